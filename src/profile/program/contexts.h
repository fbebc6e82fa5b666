#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "profile/program/nvtx/forward.h"
#include "profile/program/nvtx/ranges.h"
#include "profile/program/python_stack.h"
#include "profile/tree.h"

namespace heddle::profile {

// Numbers the contexts of a program: stacks of Python frames seen by threads and signal handlers, with the thread's
// ranges and operators. Names are read when a code object is first seen, lines when a tree is made.
class ProgramContexts {
 public:
  explicit ProgramContexts(PythonRuntime python);

  // Sets the names and lines of a frame's code object. Without this call, they are read when it is first seen.
  void learn(const PythonFrame& frame, PythonCode code);
  // The number of a stack, from 1; 0 without frames. `frames`: innermost first. May be called in any thread.
  uint64_t number_of(std::span<const PythonFrame> frames);
  // The context of the calling thread, which must not be in a signal handler. Costs a walk and two lookups if the
  // thread was here before. A thread without Python, such as autograd's, gets the frames of the thread that was here
  // last, if that one is in backward(). Ranges of the program go above the frames, operators below. In backward(), the
  // place where the forward operator of the gradient was called comes between frames and operators.
  uint64_t here();

  // The node of a stack, below the root. Frames that only pass a call on are left out unless `all_frames`. Frames of a
  // torch.nn.Module's call become its name, the outermost one below a phase forward. Frames of Optimizer.step and
  // backward() become a phase.
  NodeId node_of(uint64_t context, CallingContextTree& tree, bool all_frames);
  // Sets the names of modules by the address of the object: "layer3.5.conv2". Nodes made before keep their names.
  void name_modules(std::map<uint64_t, std::string> names);
  // Objects whose frames are calls of modules.
  std::vector<uint64_t> modules() const;

 private:
  struct Step {
    uint32_t code = 0;
    int32_t instruction = 0;
    uint64_t self = 0;      // of a call of a module
    uint32_t range = 0;     // 1 + the name of a range, in place of a frame
    bool operates = false;  // the range is an operator
    uint64_t forward = 0;   // the number of a stack, in place of a frame: where the forward operator was called
    auto operator<=>(const Step&) const = default;
  };
  struct Stack {
    uint64_t parent = 0;  // the number of the stack that called
    Step step;
  };
  struct Seen {
    std::vector<size_t> calls;  // frames that are calls of modules; their objects tell such stacks apart
    bool is_backward = false;
  };
  struct Known;  // of a thread
  Known& known() const;
  uint64_t python_here(bool* has_python);
  uint64_t of_waiting(uint64_t thread);
  uint64_t with_ranges(uint64_t python, bool has_python, std::span<const Range> ranges);
  uint64_t child(uint64_t parent, const Step& step);
  std::vector<uint64_t> path_of(uint64_t number) const;
  uint64_t add(std::span<const PythonFrame> frames);
  uint64_t known_number_of(std::span<const PythonFrame> frames, bool waiting, bool* has_modules = nullptr);
  Seen look_at(std::span<const PythonFrame> frames);
  uint32_t code_of(const PythonFrame& frame);
  bool frame_of(const Step& step, bool all_frames, Frame* to) const;
  NodeId add_step(const Step& step, NodeId node, CallingContextTree& tree, bool all_frames) const;
  NodeId add_forward(uint64_t forward, uint64_t below, NodeId node, CallingContextTree& tree, bool all_frames) const;

  PythonRuntime python_;
  uint64_t serial_;                        // identifies this object in the caches of threads
  std::atomic<uint64_t> last_thread_ = 0;  // its PyThreadState
  mutable std::mutex mutex_;
  std::vector<PythonCode> codes_ = {{}};                   // the first: could not be read
  std::map<PythonFrame, uint32_t> code_numbers_;           // by what tells code objects apart
  std::vector<Stack> stacks_ = {{}};                       // the first: none
  std::map<std::pair<uint64_t, Step>, uint64_t> numbers_;  // by caller and step
  std::map<uint64_t, NodeId> nodes_;                       // of numbers
  ForwardOperators forward_;
};

// The object that a frame of ProgramContexts stands for; 0 for one of another kind.
uint64_t module_address(const Frame& frame);

}  // namespace heddle::profile
