#include "runtime/plan.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::runtime {
namespace {

// Of an arena or a buffer: no sum of them overflows. No machine has as much.
constexpr int64_t kMostBytes = int64_t{1} << 46;
constexpr size_t kMostStates = 1 << 16;

class Validator {
 public:
  Validator(const Plan& plan, int depth) : plan_(plan), depth_(depth) {}

  void run() {
    require(depth_ < kMaxDepth, "bodies are nested too deeply");
    require(plan_.arena_bytes >= 0 && plan_.arena_bytes <= kMostBytes, "the arena has an impossible size");
    for (const Port& port : plan_.inputs) check_port(port);
    for (const Port& port : plan_.outputs) check_port(port);
    for (const FixedInput& fixed : plan_.fixed) require(fixed.input < plan_.inputs.size(), "a fixed input is missing");
    for (const DefaultInput& input : plan_.defaults) {
      require(input.dtype == DType::kString || runtime::dense_bytes(input.dtype, input.shape) >= 0,
              "a default has an impossible type or shape");
    }
    check_aliases();
    for (const Buffer& buffer : plan_.buffers) check(buffer);
    for (const Step& step : plan_.steps) {
      std::visit([&](const auto& action) { check(action); }, step.action);
    }
  }

 private:
  static void require(bool condition, const char* rule) {
    if (!condition) fail(ErrorCode::kDamagedArtefact, "plan", rule, "Compile the model again");
  }

  static int64_t dense_bytes(DType dtype, const Shape& shape) {
    const int64_t bytes = runtime::dense_bytes(dtype, shape);
    require(bytes >= 0, "a buffer has an impossible type or shape");
    return bytes;
  }

  void check_port(const Port& port) const {
    require(dense_bytes(port.dtype, port.shape) == buffer(port.buffer).bytes, "a port does not fit its buffer");
  }

  void check_aliases() const {
    std::vector<bool> input(plan_.inputs.size()), output(plan_.outputs.size());
    require(plan_.aliases.empty() || depth_ == 0, "an output of a body shares the memory of an input");
    for (const Alias& alias : plan_.aliases) {
      require(alias.input < input.size() && alias.output < output.size(), "an alias is of no input or output");
      require(!input[alias.input] && !output[alias.output], "an input or output has two aliases");
      input[alias.input] = output[alias.output] = true;
      const Port &from = plan_.inputs[alias.input], &to = plan_.outputs[alias.output];
      require(from.dtype == to.dtype && from.shape == to.shape, "an alias is of another type");
      const Buffer& place = buffer(to.buffer);
      require(place.place == Place::kOutput && place.index == alias.output, "an alias is not written to its place");
    }
  }

  const Buffer& buffer(uint32_t index) const {
    require(index < plan_.buffers.size(), "a buffer is missing");
    return plan_.buffers[index];
  }

  void check(const Buffer& buffer) const {
    const int64_t dense = dense_bytes(buffer.dtype, buffer.shape);
    require(buffer.bytes >= 0 && buffer.bytes <= kMostBytes, "a buffer has an impossible size");
    const auto is_port = [&](const std::vector<Port>& ports) {
      return buffer.index < ports.size() &&
             buffer.bytes == dense_bytes(ports[buffer.index].dtype, ports[buffer.index].shape);
    };
    switch (buffer.place) {
      case Place::kArena: {
        int64_t end = 0;
        require(buffer.bytes == dense, "a buffer's size is not that of its shape");
        require(buffer.offset >= 0 && buffer.offset % kAlignment == 0 &&
                    !__builtin_add_overflow(buffer.offset, buffer.bytes, &end) && end <= plan_.arena_bytes,
                "a buffer lies outside the arena");
        return;
      }
      case Place::kConstant:
        require(buffer.index < plan_.constants.size() &&
                    static_cast<size_t>(buffer.bytes) == plan_.constants[buffer.index].bytes(),
                "a constant is missing");
        return;
      case Place::kInput:
        return require(is_port(plan_.inputs), "an input is missing");
      case Place::kOutput:
        return require(is_port(plan_.outputs), "an output is missing");
    }
    require(false, "a buffer is in an unknown place");
  }

  void check_writable(uint32_t index) const {
    const Place place = buffer(index).place;
    require(place == Place::kArena || place == Place::kOutput, "a step writes to a buffer that may only be read");
  }

  void check_all(const std::vector<uint32_t>& buffers, bool written = false) const {
    for (uint32_t index : buffers) {
      buffer(index);
      if (written) check_writable(index);
    }
  }

  void check(const KernelStep& step) const {
    check_all(step.operands);
    require(step.tasks >= 0 && step.scratch_bytes >= 0 && step.scratch_bytes < (int64_t{1} << 40),
            "a kernel's sizes are wrong");
  }

  void check(const ReferenceStep& step) const {
    check_all(step.parameters);
    check_all(step.results, true);
  }

  void check(const CopyStep& step) const {
    check_writable(step.to);
    require(buffer(step.from).bytes == buffer(step.to).bytes, "a copy between buffers of different sizes");
  }

  void check(const CudaStep& step) const {
    check_all(step.operands);
    require(step.counter_bytes >= 0 && step.counter_bytes <= kMostCounterBytes, "a kernel has too many counters");
    for (const CudaLaunch& launch : step.launches) check(launch, step);
  }

  void check(const CudaLaunch& launch, const CudaStep& step) const {
    constexpr uint32_t kMostX = 0x7fffffff, kMostYZ = 65535, kMostThreads = 1024, kMostShared = 1 << 20;
    constexpr uint32_t kMostCluster = 16;
    constexpr size_t kMostArgumentBytes = 32764;  // of a driver for CUDA 12.1
    require(launch.grid[0] >= 1 && launch.grid[0] <= kMostX && launch.grid[1] >= 1 && launch.grid[1] <= kMostYZ &&
                launch.grid[2] >= 1 && launch.grid[2] <= kMostYZ && launch.block >= 1 && launch.block <= kMostThreads &&
                launch.shared_bytes <= kMostShared,
            "a launch has an impossible size");
    require(launch.cluster >= 1 && launch.cluster <= kMostCluster && launch.grid[0] % launch.cluster == 0,
            "a launch's clusters do not divide its grid");
    const size_t operands = step.operands.size() + (step.counter_bytes > 0 ? 1 : 0);
    size_t bytes = launch.maps.size() * kTensorMapBytes;
    for (const std::vector<uint8_t>& block : launch.arguments) bytes += block.size();
    require(bytes <= kMostArgumentBytes, "a launch has too many arguments");
    for (const PointerPatch& patch : launch.pointers) {
      require(patch.argument >= 0 && static_cast<size_t>(patch.argument) < launch.arguments.size() &&
                  patch.operand >= 0 && static_cast<size_t>(patch.operand) < operands && patch.offset >= 0,
              "a launch's pointer refers to nothing");
      const auto operand = static_cast<size_t>(patch.operand);
      const int64_t bytes_there =
          operand < step.operands.size() ? buffer(step.operands[operand]).bytes : step.counter_bytes;
      require(patch.begin == 0 || (patch.begin > 0 && patch.begin < bytes_there),
              "a launch's pointer lies outside its operand");
      const size_t block = launch.arguments[static_cast<size_t>(patch.argument)].size();
      require(block >= sizeof(uint64_t) && static_cast<size_t>(patch.offset) <= block - sizeof(uint64_t),
              "a launch's pointer lies outside its arguments");
    }
    for (const TensorMapDesc& map : launch.maps) {
      require(map.operand >= 0 && static_cast<size_t>(map.operand) < step.operands.size(),
              "a tensor map refers to nothing");
      check(map, buffer(step.operands[static_cast<size_t>(map.operand)]).bytes);
    }
  }

  // The driver checks the rest when it encodes the map.
  static void check(const TensorMapDesc& map, int64_t bytes) {
    require(map.element <= TensorMapDesc::Element::kTf32, "a tensor map has an unknown type");
    require(map.swizzle_bytes == 16 || map.swizzle_bytes == 32 || map.swizzle_bytes == 64 || map.swizzle_bytes == 128,
            "a tensor map has an unknown swizzle");
    const uint64_t element = map.element == TensorMapDesc::Element::kBits8    ? 1
                             : map.element == TensorMapDesc::Element::kBits16 ? 2
                                                                              : 4;
    // The end of the last element.
    uint64_t end = map.offset, span = 0;
    bool fits = map.offset % 16 == 0 && map.extents[0] > 0 && map.extents[1] > 0 && map.extents[2] > 0 &&
                !__builtin_mul_overflow(map.extents[0], element, &span) && !__builtin_add_overflow(end, span, &end);
    for (size_t d = 0; fits && d < map.strides.size(); ++d) {
      fits = !__builtin_mul_overflow(map.extents[d + 1] - 1, map.strides[d], &span) &&
             !__builtin_add_overflow(end, span, &end);
    }
    if (fits && map.outer[0] > 0) {
      fits = !map.windows && !__builtin_mul_overflow(map.outer[0] - 1, map.outer[1], &span) &&
             !__builtin_add_overflow(end, span, &end);
    }
    if (fits && map.windows) {  // extents[1] is a line of pixels
      const TensorMapWindows& w = *map.windows;
      fits = w.size[0] == map.extents[1] && w.size[1] > 0 && !__builtin_mul_overflow(w.size[1] - 1, w.line, &span) &&
             !__builtin_add_overflow(end, span, &end);
    }
    require(fits && end <= static_cast<uint64_t>(bytes), "a tensor map lies outside its operand");
  }

  void check_body(const std::shared_ptr<const Plan>& body) const {
    require(body != nullptr, "a body is missing");
    Validator(*body, depth_ + 1).run();
    for (const Port& port : body->outputs) {
      require(body->buffers[port.buffer].place != Place::kArena, "a body returns a buffer of its arena");
    }
  }

  void check_bytes(uint32_t outer, const Port& port, int64_t count = 1) const {
    int64_t bytes = 0;
    require(!__builtin_mul_overflow(dense_bytes(port.dtype, port.shape), count, &bytes) && buffer(outer).bytes == bytes,
            "a body's port does not fit the outer buffer");
  }

  void check(const LoopStep& step) const {
    check_body(step.body);
    const Plan& body = *step.body;
    const size_t states = step.states.size(), slices = step.stacked.size();
    require(states <= kMostStates, "a loop has too many states");
    require(body.inputs.size() == 2 + states + step.invariants.size() && body.outputs.size() == 1 + states + slices &&
                step.final_states.size() == states,
            "a loop does not fit its body");
    require(slices == 0 || step.trip_bound >= 0, "a loop with stacked outputs has no bound");
    check_writable(step.workspace);
    require(buffer(step.workspace).place == Place::kArena && buffer(step.workspace).bytes >= workspace_bytes(step),
            "a loop's workspace is too small");
    require(buffer(step.trip).bytes == 8 && buffer(step.condition).bytes == 1, "a loop's bounds have wrong types");
    check_bytes(step.condition, body.outputs[0]);
    require(dense_bytes(body.inputs[0].dtype, body.inputs[0].shape) == 8 &&
                dense_bytes(body.inputs[1].dtype, body.inputs[1].shape) == 1,
            "a loop's body has wrong types");
    for (size_t i = 0; i < states; ++i) {
      check_bytes(step.states[i], body.inputs[2 + i]);
      check_bytes(step.states[i], body.outputs[1 + i]);
      check_bytes(step.final_states[i], body.outputs[1 + i]);
    }
    for (size_t i = 0; i < step.invariants.size(); ++i) check_bytes(step.invariants[i], body.inputs[2 + states + i]);
    for (size_t i = 0; i < slices; ++i) check_bytes(step.stacked[i], body.outputs[1 + states + i], step.trip_bound);
    check_all(step.final_states, true);
    check_all(step.stacked, true);
  }

  void check(const BranchStep& step) const {
    for (const auto& body : {step.then_body, step.else_body}) {
      check_body(body);
      require(body->inputs.size() == step.captured.size() && body->outputs.size() == step.results.size(),
              "a branch does not fit its body");
      for (size_t i = 0; i < step.captured.size(); ++i) check_bytes(step.captured[i], body->inputs[i]);
      for (size_t i = 0; i < step.results.size(); ++i) check_bytes(step.results[i], body->outputs[i]);
    }
    check_all(step.results, true);
    require(buffer(step.condition).bytes == 1, "a branch's condition has a wrong type");
    require(buffer(step.workspace).place == Place::kArena && buffer(step.workspace).bytes >= workspace_bytes(step),
            "a branch's workspace is too small");
  }

  const Plan& plan_;
  int depth_;
};

}  // namespace

int64_t dense_bytes(DType dtype, const Shape& shape) {
  if (dtype >= DType::kString) return -1;
  auto bytes = static_cast<int64_t>(size_of(dtype));
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) return -1;
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes)) return -1;
  }
  return empty ? 0 : bytes;
}

LoopLayout layout_of(const LoopStep& step) {
  LoopLayout layout;
  layout.condition_in = 16;
  layout.condition_out = 17;
  int64_t at = kAlignment;
  for (size_t i = 0; i < step.states.size(); ++i) {
    const Port& port = step.body->outputs[1 + i];
    layout.spare.push_back(at);
    at += aligned(step.body->buffers[port.buffer].bytes);
  }
  layout.arena = at;
  layout.bytes = at + aligned(step.body->arena_bytes);
  return layout;
}

int64_t workspace_bytes(const LoopStep& step) {
  return layout_of(step).bytes;
}

int64_t workspace_bytes(const BranchStep& step) {
  return aligned(std::max(step.then_body->arena_bytes, step.else_body->arena_bytes));
}

int64_t constant_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const Tensor& constant : plan.constants) bytes += static_cast<int64_t>(constant.bytes());
  for (const Step& step : plan.steps) {
    if (const auto* loop = std::get_if<LoopStep>(&step.action)) bytes += constant_bytes(*loop->body);
    if (const auto* branch = std::get_if<BranchStep>(&step.action)) {
      bytes += constant_bytes(*branch->then_body) + constant_bytes(*branch->else_body);
    }
  }
  return bytes;
}

int64_t alias_of(const Plan& plan, size_t output) {
  const auto found = std::find_if(plan.aliases.begin(), plan.aliases.end(),
                                  [&](const Alias& alias) { return alias.output == output; });
  return found == plan.aliases.end() ? -1 : static_cast<int64_t>(found->input);
}

void validate(const Plan& plan) {
  Validator(plan, 0).run();
}

}  // namespace heddle::runtime
