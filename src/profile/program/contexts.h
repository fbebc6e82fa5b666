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

// Assigns numbers to the contexts of a program. A context is a stack of Python frames, recorded in a thread or in a
// signal handler, with the thread's ranges and operators. The names of a code object are read when the code object is
// first seen. Its lines are read when a tree is made.
class ProgramContexts {
 public:
  explicit ProgramContexts(PythonRuntime python);

  // Sets the names and lines of a frame's code object, which are otherwise read from the code object itself.
  void learn(const PythonFrame& frame, PythonCode code);
  // Returns the number of a stack, which is at least 1; 0 if there are no frames. `frames`: innermost first. Any thread
  // may call this.
  uint64_t number_of(std::span<const PythonFrame> frames);
  // Returns the number of the calling thread's context. Must not be called in a signal handler. For a stack that the
  // thread had before, a call costs a stack walk and two lookups. A thread without Python frames, such as one of
  // autograd's, gets the frames of the last Python thread that called here(), if that thread is in backward(). The
  // program's ranges are placed above the frames, and operators are placed below the frames. In backward(), the path to
  // the call of the gradient's forward operator is placed between frames and operators.
  uint64_t here();

  // Returns the node of a stack, below the root. Omits frames that only forward a call, unless `all_frames` is set. The
  // frames of a torch.nn.Module's call are replaced by the module's name; the outermost module is below a phase
  // "forward". The frames of Optimizer.step and backward() are replaced by a phase.
  NodeId node_of(uint64_t context, CallingContextTree& tree, bool all_frames);
  // Sets the names of modules, such as "layer3.5.conv2", by the address of the module object. Existing nodes keep their
  // names.
  void name_modules(std::map<uint64_t, std::string> names);
  // Returns the addresses of the module objects whose calls were seen in frames.
  std::vector<uint64_t> modules() const;

 private:
  struct Step {
    uint32_t code = 0;
    int32_t instruction = 0;
    uint64_t self = 0;      // of a call of a module: the address of the module object
    uint32_t range = 0;     // of a range, in place of a frame: 1 + the number of its name
    bool operates = false;  // the range is an operator
    uint64_t forward = 0;   // in place of a frame: the number of the stack that called the forward operator
    auto operator<=>(const Step&) const = default;
  };
  struct Stack {
    uint64_t parent = 0;  // the number of the caller's stack
    Step step;
  };
  struct Seen {
    std::vector<size_t> calls;  // frames that are calls of modules; equal stacks with different objects are distinct
    bool is_backward = false;
  };
  struct Known;  // the cache of a thread
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
  std::atomic<uint64_t> last_thread_ = 0;  // PyThreadState of the last Python thread in here()
  mutable std::mutex mutex_;
  std::vector<PythonCode> codes_ = {{}};                   // entry 0: code that could not be read
  std::map<PythonFrame, uint32_t> code_numbers_;           // by the fields that identify a code object
  std::vector<Stack> stacks_ = {{}};                       // entry 0: no stack
  std::map<std::pair<uint64_t, Step>, uint64_t> numbers_;  // by caller and step
  std::map<uint64_t, NodeId> nodes_;                       // by number of the stack
  ForwardOperators forward_;
};

// Returns the address of the module object that a frame stands for; 0 for a frame of another kind.
uint64_t module_address(const Frame& frame);

}  // namespace heddle::profile
