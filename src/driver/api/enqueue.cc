#include "driver/api/enqueue.h"

#include "base/check.h"

namespace heddle {
namespace {

constexpr uint64_t kTensorAlignment = 16, kWorkspaceAlignment = 256;

uint64_t address_of(const void* data) {
  return reinterpret_cast<uint64_t>(data);
}

// Adds the address of each tensor that the ports take. `kind`: "input".
void add_addresses(const char* kind, const std::vector<runtime::Port>& ports, const std::vector<DeviceTensor>& given,
                   std::vector<uint64_t>& addresses) {
  if (given.size() != ports.size()) {
    fail(ErrorCode::kInvalidInput, "enqueue",
         fmt::format("{} {}s are given, the model has {}", given.size(), kind, ports.size()),
         fmt::format("Give each {} in the model's order", kind));
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    const runtime::Port& port = ports[i];
    const DeviceTensor& tensor = given[i];
    const auto wrong = [&, where = fmt::format("{} {}", kind, port.name)](const std::string& why,
                                                                          const std::string& remedy) {
      fail(ErrorCode::kInvalidInput, where, why, remedy);
    };
    if (tensor.dtype != port.dtype) {
      wrong(fmt::format("its dtype is {}, the model has {}", to_string(tensor.dtype), to_string(port.dtype)),
            fmt::format("Convert it to {}", to_string(port.dtype)));
    }
    if (tensor.shape != port.shape) {
      wrong(fmt::format("its shape is {}, it has to be {}", to_string(tensor.shape), to_string(port.shape)),
            "prepare() says which shapes the outputs have");
    }
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

}  // namespace heddle
