#include "driver/api/enqueue.h"

#include <algorithm>

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

bool overlap(const Tensor& a, const Tensor& b) {
  const uint64_t x = address_of(a.data()), y = address_of(b.data());
  return a.bytes() > 0 && b.bytes() > 0 && x < y + b.bytes() && y < x + a.bytes();
}

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
    const auto meets = [&](const Tensor& other) { return overlap(other, outputs[i]); };
    const auto end = outputs.begin() + static_cast<int64_t>(i);
    const int64_t shared = runtime::alias_of(plan, i);
    const auto is_alias = [&](const Tensor& input) {
      return shared >= 0 && &input == &inputs[static_cast<size_t>(shared)] && input.data() == outputs[i].data();
    };
    const auto meets_input = [&](const Tensor& input) { return meets(input) && !is_alias(input); };
    if (std::any_of(inputs.begin(), inputs.end(), meets_input) || std::any_of(outputs.begin(), end, meets)) {
      fail(ErrorCode::kInvalidInput, where, "its memory is that of an input or of another output, too",
           "Give it memory of its own");
    }
  }
}

}  // namespace heddle
