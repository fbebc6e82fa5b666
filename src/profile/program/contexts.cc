#include "profile/program/contexts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>

namespace heddle::profile {
namespace {

constexpr size_t kMostFrames = 256;

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return text.ends_with(end); });
}

bool calls_module(const PythonCode& code) {
  return code.name.ends_with("_call_impl") && code.file.ends_with("torch/nn/modules/module.py");
}

// Frames that say nothing about the program: how Python starts it, and who passes a call on.
bool passes_on(const PythonCode& code) {
  const std::string_view file = code.file;
  if (file.starts_with("<frozen importlib") || file.starts_with("<frozen runpy")) return true;
  if (ends_with_any(file, {"/runpy.py", "/importlib/__init__.py"})) return true;
  if (ends_with_any(file, {"/heddle_profile_record.py", "/heddle/_record.py", "/heddle/_recording.py"})) return true;
  if (file.ends_with("/threading.py")) return ends_with_any(code.name, {"_bootstrap", "_bootstrap_inner", "run"});
  if (file.ends_with("/contextlib.py")) return ends_with_any(code.name, {"inner", "__enter__", "__exit__"});
  if (file.ends_with("torch/nn/modules/module.py"))
    return ends_with_any(code.name, {"__call__", "_call_impl", "inner"});
  if (file.ends_with("torch/utils/_contextlib.py") || file.find("/heddle/tile/runtime/") != file.npos) return true;
  return false;
}

// CPython 3.10 has no qualified names.
const char* phase_of(const PythonCode& code) {
  if (code.name.ends_with("wrapper") && code.file.ends_with("torch/optim/optimizer.py")) return "optimizer";
  if (code.name.ends_with("backward") && ends_with_any(code.file, {"torch/_tensor.py", "torch/autograd/__init__.py"})) {
    return "backward";
  }
  return nullptr;
}

// Whether a node is within a module or a phase.
bool is_inside_step(const CallingContextTree& tree, NodeId node) {
  for (; node != 0; node = tree.parent(node)) {
    if (tree.frame(node).kind == "module" || tree.frame(node).kind == "phase") return true;
  }
  return false;
}

}  // namespace

ProgramContexts::ProgramContexts(PythonRuntime python) : python_(python) {
  static std::atomic<uint64_t> made = 0;
  serial_ = ++made;
}

uint32_t ProgramContexts::code_of(const PythonFrame& frame) {
  PythonFrame key = frame;
  key.instruction = 0, key.first_local = 0;
  const auto [found, is_new] = code_numbers_.try_emplace(key, 0);
  if (!is_new) return found->second;
  PythonCode code;
  if (!read_code(python_, frame, &code)) return 0;
  codes_.push_back(std::move(code));
  return found->second = static_cast<uint32_t>(codes_.size() - 1);
}

void ProgramContexts::learn(const PythonFrame& frame, PythonCode code) {
  const std::lock_guard lock(mutex_);
  PythonFrame key = frame;
  key.instruction = 0, key.first_local = 0;
  uint32_t& number = code_numbers_[key];
  code.lines_are_pairs = python_.layout->code_instructions == 0;
  if (number != 0 && codes_[number].name == code.name && codes_[number].lines == code.lines) return;
  codes_.push_back(std::move(code));
  number = static_cast<uint32_t>(codes_.size() - 1);
}

uint64_t ProgramContexts::number_of(std::span<const PythonFrame> frames) {
  const std::lock_guard lock(mutex_);
  return add(frames);
}

uint64_t ProgramContexts::child(uint64_t parent, const Step& step) {
  const auto [found, is_new] = numbers_.try_emplace({parent, step}, stacks_.size());
  if (is_new) stacks_.push_back({parent, step});
  return found->second;
}

// Numbers of a stack and of those that called it, the outermost first.
std::vector<uint64_t> ProgramContexts::path_of(uint64_t number) const {
  std::vector<uint64_t> path;
  for (uint64_t at = number; at != 0 && at < stacks_.size(); at = stacks_[at].parent) path.push_back(at);
  std::reverse(path.begin(), path.end());
  return path;
}

uint64_t ProgramContexts::add(std::span<const PythonFrame> frames) {
  uint64_t number = 0;
  for (size_t i = frames.size(); i-- > 0;) {
    const PythonFrame& frame = frames[i];
    Step step{code_of(frame), frame.instruction, 0};
    if (calls_module(codes_[step.code])) step.self = object_of(python_, frame.first_local);
    number = child(number, step);
  }
  return number;
}

ProgramContexts::Seen ProgramContexts::look_at(std::span<const PythonFrame> frames) {
  const std::lock_guard lock(mutex_);
  Seen seen;
  for (size_t i = 0; i < frames.size(); ++i) {
    const PythonCode& code = codes_[code_of(frames[i])];
    if (calls_module(code)) seen.calls.push_back(i);
    const char* phase = phase_of(code);
    seen.is_backward = seen.is_backward || (phase != nullptr && std::string_view(phase) == "backward");
  }
  return seen;
}

// What a thread met before: most stacks are met again and again.
struct ProgramContexts::Known {
  uint64_t serial = 0;
  std::unordered_map<uint64_t, Seen> stacks;       // by their hash
  std::unordered_map<uint64_t, uint64_t> numbers;  // by the hash with the modules
  WaitingStack waiting;
  std::unordered_map<uint64_t, uint64_t> waiting_numbers;  // by hash_of_waiting(), of stacks without calls of modules
  std::unordered_map<uint64_t, uint64_t> ranged;           // with ranges, by a hash of all
};

ProgramContexts::Known& ProgramContexts::known() const {
  static thread_local Known known;
  if (known.serial != serial_) known = {serial_, {}, {}, {}, {}, {}};
  return known;
}

// As number_of(). `waiting`: the frames are another thread's, and have a number only within backward().
uint64_t ProgramContexts::known_number_of(std::span<const PythonFrame> frames, bool waiting, bool* has_modules) {
  Known& known = this->known();
  uint64_t hash = 0;
  const auto mix = [&](uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  };
  for (const PythonFrame& frame : frames) {
    mix(frame.code);
    mix(frame.lines);
    mix(static_cast<uint64_t>(frame.first_line) << 32 | static_cast<uint32_t>(frame.instruction));
  }
  const auto [seen, is_new_stack] = known.stacks.try_emplace(hash);
  if (is_new_stack) seen->second = look_at(frames);
  if (has_modules != nullptr) *has_modules = !seen->second.calls.empty();
  if (waiting && !seen->second.is_backward) return 0;
  for (const size_t call : seen->second.calls) {
    const uint64_t local = frames[call].first_local;
    mix(waiting ? object_of(python_, local) : resting_object_of(python_, local));
  }
  const auto [number, is_new] = known.numbers.try_emplace(hash, 0);
  if (is_new) number->second = number_of(frames);
  return number->second;
}

uint64_t ProgramContexts::here() {
  bool has_python = false;
  const uint64_t python = python_here(&has_python);
  const std::span<const Range> ranges = ranges_of_thread();
  return ranges.empty() ? python : with_ranges(python, has_python, ranges);
}

uint64_t ProgramContexts::python_here(bool* has_python) {
  if (python_.layout == nullptr) return 0;
  std::array<PythonFrame, kMostFrames> frames;
  if (const size_t count = walk_resting_python(python_, frames)) {
    last_thread_ = reinterpret_cast<uint64_t>(python_.thread_state());
    *has_python = true;
    return known_number_of(std::span(frames).first(count), false);
  }
  const uint64_t other = last_thread_;
  return other == 0 ? 0 : of_waiting(other);
}

// While backward() works, its caller waits, and its frames are the same from launch to launch.
uint64_t ProgramContexts::of_waiting(uint64_t thread) {
  Known& known = this->known();
  uint64_t hash = 0;
  if (known.waiting.thread == thread && hash_of_waiting(python_, known.waiting, &hash)) {
    const auto number = known.waiting_numbers.find(hash);
    if (number != known.waiting_numbers.end()) return number->second;
  }
  std::array<PythonFrame, kMostFrames> frames;
  const size_t count = walk_python(python_, thread, frames);
  if (count == 0) return 0;
  bool has_modules = false;
  const uint64_t number = known_number_of(std::span(frames).first(count), true, &has_modules);
  known.waiting = has_modules ? WaitingStack() : find_waiting_stack(python_, thread);
  if (hash_of_waiting(python_, known.waiting, &hash)) known.waiting_numbers[hash] = number;
  return number;
}

uint64_t ProgramContexts::with_ranges(uint64_t python, bool has_python, std::span<const Range> ranges) {
  // A gradient written in Python has frames as well.
  const bool in_backward =
      std::any_of(ranges.begin(), ranges.end(), [](const Range& range) { return range.is_engine; });
  const uint64_t forward = in_backward ? forward_.stack_of(ranges) : 0;
  if (!in_backward && has_python) forward_.remember(ranges, python);
  uint64_t hash = ranges.back().path;
  for (const uint64_t value : {python, forward}) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  const auto [known, is_new] = this->known().ranged.try_emplace(hash, 0);
  if (!is_new) return known->second;
  const std::lock_guard lock(mutex_);
  uint64_t number = 0;
  const auto add_ranges = [&](bool operators) {
    for (const Range& range : ranges) {
      if (range.is_operator != operators) continue;
      number = child(number, Step{.range = range.name + 1, .operates = operators});
    }
  };
  add_ranges(false);
  for (const uint64_t at : path_of(python)) number = child(number, Step(stacks_[at].step));
  if (forward != 0) number = child(number, Step{.forward = forward});
  add_ranges(true);
  return known->second = number;
}

bool ProgramContexts::frame_of(const Step& step, bool all_frames, Frame* to) const {
  if (step.range != 0) {
    *to = {step.operates ? "operator" : "range", range_name(step.range - 1)};
    // evaluate_function calls the function of the same name.
    constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
    if (step.operates && to->name.starts_with(kEngine)) to->name.erase(0, kEngine.size());
    return true;
  }
  const PythonCode& code = codes_[step.code];
  if (step.code == 0) {
    *to = {"python", "(unknown)"};
    return all_frames;
  }
  if (!all_frames) {
    if (const char* phase = phase_of(code)) {
      *to = {"phase", phase};
      return true;
    }
    if (step.self != 0) {
      *to = {"module", fmt::format("@{:x}", step.self)};
      return true;
    }
    if (passes_on(code)) return false;
  }
  *to = {"python", code.name, code.file, code.line_of(step.instruction)};
  return true;
}

NodeId ProgramContexts::add_step(const Step& step, NodeId node, CallingContextTree& tree, bool all_frames) const {
  Frame frame;
  const bool shown = frame_of(step, all_frames, &frame);
  // _wrapped_call_impl calls _call_impl of the same module.
  const bool again = shown && frame.kind != "python" && tree.frame(node) == frame;
  if (shown && frame.kind == "module" && !is_inside_step(tree, node))
    node = tree.child(node, Frame{"phase", "forward"});
  return shown && !again ? tree.child(node, frame) : node;
}

// The frames of a forward operator's stack, without those that it has in common with the stack `below`.
NodeId ProgramContexts::add_forward(uint64_t forward, uint64_t below, NodeId node, CallingContextTree& tree,
                                    bool all_frames) const {
  const auto is_frame = [&](uint64_t at) { return stacks_[at].step.range == 0; };
  std::vector<uint64_t> callers = path_of(below), path = path_of(forward);
  std::erase_if(callers, [&](uint64_t at) { return !is_frame(at); });
  size_t common = 0;
  while (common < std::min(callers.size(), path.size()) &&
         stacks_[callers[common]].step == stacks_[path[common]].step) {
    ++common;
  }
  for (size_t i = common; i < path.size(); ++i) node = add_step(stacks_[path[i]].step, node, tree, all_frames);
  return node;
}

NodeId ProgramContexts::node_of(uint64_t context, CallingContextTree& tree, bool all_frames) {
  const std::lock_guard lock(mutex_);
  NodeId node = 0;
  for (const uint64_t at : path_of(context)) {
    const auto [found, is_new] = nodes_.try_emplace(at, 0);
    if (is_new) {
      const Stack& stack = stacks_[at];
      found->second = stack.step.forward != 0 ? add_forward(stack.step.forward, stack.parent, node, tree, all_frames)
                                              : add_step(stack.step, node, tree, all_frames);
    }
    node = found->second;
  }
  return node;
}

std::vector<uint64_t> ProgramContexts::modules() const {
  const std::lock_guard lock(mutex_);
  std::set<uint64_t> found;
  for (const Stack& stack : stacks_) {
    if (stack.step.self != 0) found.insert(stack.step.self);
  }
  return {found.begin(), found.end()};
}

uint64_t module_address(const Frame& frame) {
  if (frame.kind != "module" || !frame.name.starts_with('@')) return 0;
  uint64_t address = 0;
  std::from_chars(frame.name.data() + 1, frame.name.data() + frame.name.size(), address, 16);
  return address;
}

}  // namespace heddle::profile
