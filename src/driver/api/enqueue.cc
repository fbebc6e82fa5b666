#include "driver/api/enqueue.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace heddle {
namespace {

constexpr uint64_t kTensorAlignment = 16, kWorkspaceAlignment = 256;

uint64_t address_of(const void* data) {
  return reinterpret_cast<uint64_t>(data);
}

// `kind`: "input".
void check_count(const char* kind, const std::vector<runtime::Port>& ports, size_t given) {
  if (given == ports.size()) return;
  fail(ErrorCode::kInvalidInput, fmt::format("{}s", kind),
       fmt::format("{} {}s are given, the model has {}", given, kind, ports.size()),
       fmt::format("Give each {} in the model's order", kind));
}

void check_type(const std::string& where, const runtime::Port& port, DType dtype, const Shape& shape) {
  if (dtype != port.dtype) {
    fail(ErrorCode::kInvalidInput, where,
         fmt::format("its dtype is {}, the model has {}", to_string(dtype), to_string(port.dtype)),
         fmt::format("Convert it to {}", to_string(port.dtype)));
  }
  if (shape != port.shape) {
    fail(ErrorCode::kInvalidInput, where,
         fmt::format("its shape is {}, it has to be {}", to_string(shape), to_string(port.shape)),
         "prepare() says which shapes the outputs have");
  }
}

// The memory ranges of a run: inputs, which may overlap, outputs and the workspace.
class RunMemory {
 public:
  RunMemory(const runtime::Plan& plan, const std::vector<uint64_t>& inputs, const std::vector<uint64_t>& outputs)
      : plan_(plan) {
    const auto add = [&](const runtime::Port& port, uint64_t at) {
      ranges_.push_back({at, at + static_cast<uint64_t>(plan.buffers[port.buffer].bytes), ranges_.size()});
    };
    ranges_.reserve(inputs.size() + outputs.size() + 1);
    for (size_t i = 0; i < inputs.size(); ++i) add(plan.inputs[i], inputs[i]);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int64_t shared = runtime::alias_of(plan, i);
      const auto input = static_cast<size_t>(shared);
      if (shared >= 0 && inputs[input] == outputs[i]) ranges_[input].end = inputs[input];  // the input is that output
      add(plan.outputs[i], outputs[i]);
    }
  }
  void add_workspace(uint64_t at, size_t bytes) { ranges_.push_back({at, at + bytes, ranges_.size()}); }

  // Throws kInvalidInput if memory that is written overlaps any other range.
  void check_overlaps() {
    std::erase_if(ranges_, [](const Range& range) { return range.begin == range.end; });
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    Range last, last_written;  // of the earlier ranges, those that reach farthest
    for (const Range& range : ranges_) {
      const Range& met = is_written(range) ? last : last_written;
      if (range.begin < met.end) {
        fail(ErrorCode::kInvalidInput, name_of(is_written(range) ? range : met),
             fmt::format("its memory is that of {}, too", name_of(is_written(range) ? met : range)),
             "Give it memory of its own");
      }
      if (range.end > last.end) last = range;
      if (is_written(range) && range.end > last_written.end) last_written = range;
    }
  }

 private:
  struct Range {
    uint64_t begin = 0, end = 0;
    size_t port = 0;  // inputs first, then outputs, then the workspace
  };
  bool is_written(const Range& range) const { return range.port >= plan_.inputs.size(); }
  std::string name_of(const Range& range) const {
    if (!is_written(range)) return "input " + plan_.inputs[range.port].name;
    const size_t output = range.port - plan_.inputs.size();
    return output < plan_.outputs.size() ? "output " + plan_.outputs[output].name : "workspace";
  }

  const runtime::Plan& plan_;
  std::vector<Range> ranges_;
};

// Adds the address of each tensor that the ports take.
void add_addresses(const char* kind, const std::vector<runtime::Port>& ports, const std::vector<DeviceTensor>& given,
                   std::vector<uint64_t>& addresses) {
  check_count(kind, ports, given.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    const runtime::Port& port = ports[i];
    const DeviceTensor& tensor = given[i];
    const std::string where = fmt::format("{} {}", kind, port.name);
    const auto wrong = [&](const std::string& why, const std::string& remedy) {
      fail(ErrorCode::kInvalidInput, where, why, remedy);
    };
    check_type(where, port, tensor.dtype, tensor.shape);
    const uint64_t address = address_of(tensor.data);
    if (element_count(port.shape) > 0 && address == 0) wrong("it has no memory", "Allocate it on the model's GPU");
    if (address % kTensorAlignment != 0) {
      wrong(fmt::format("it lies at {:#x}, which is no multiple of {}", address, kTensorAlignment),
            "Copy it to memory of its own");
    }
    addresses.push_back(address);
  }
}

}  // namespace

std::vector<uint64_t> addresses_of(const runtime::Plan& plan, const std::vector<DeviceTensor>& inputs,
                                   const std::vector<DeviceTensor>& outputs, const void* workspace, size_t bytes) {
  std::vector<uint64_t> addresses;
  add_addresses("input", plan.inputs, inputs, addresses);
  add_addresses("output", plan.outputs, outputs, addresses);
  const uint64_t at = address_of(workspace);
  if ((bytes > 0 && at == 0) || at % kWorkspaceAlignment != 0) {
    fail(ErrorCode::kInvalidInput, "workspace",
         fmt::format("it lies at {:#x}, and {} bytes at a multiple of {} are needed", at, bytes, kWorkspaceAlignment),
         "Allocate what prepare() says on the model's GPU");
  }
  const auto outputs_at = addresses.begin() + static_cast<int64_t>(inputs.size());
  RunMemory memory(plan, {addresses.begin(), outputs_at}, {outputs_at, addresses.end()});
  memory.add_workspace(at, bytes);
  memory.check_overlaps();
  addresses.push_back(at);
  return addresses;
}

void check_outputs(const runtime::Plan& plan, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  if (!plan.texts.empty()) {
    fail(ErrorCode::kUnsupportedType, "run", fmt::format("output {} is text", plan.texts.front().name),
         "Take the results in memory of their own");
  }
  check_count("output", plan.outputs, outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string where = fmt::format("output {}", plan.outputs[i].name);
    if (!outputs[i].defined()) outputs[i] = Tensor::unfilled(plan.outputs[i].dtype, plan.outputs[i].shape);
    check_type(where, plan.outputs[i], outputs[i].dtype(), outputs[i].shape());
  }
  const auto addresses = [](const std::vector<Tensor>& tensors) {
    std::vector<uint64_t> all;
    for (const Tensor& tensor : tensors) all.push_back(address_of(tensor.data()));
    return all;
  };
  RunMemory(plan, addresses(inputs), addresses(outputs)).check_overlaps();
}

}  // namespace heddle
