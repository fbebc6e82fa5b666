// A stand-in for NVML: the GPU at bus 1 takes 250 W and its counter has updates every 5 ms; the GPU at bus 2 has no
// counter.
#include <chrono>
#include <string_view>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kNotFound = 6;
char measured, silent;  // their addresses are the handles of the GPUs

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int nvmlInit_v2() {
  return kSuccess;
}

__attribute__((visibility("default"))) const char* nvmlErrorString(int result) {
  return result == kNotSupported ? "Not Supported" : "Not Found";
}

__attribute__((visibility("default"))) int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  const std::string_view at(address);
  *device = at == "00000000:01:00.0" ? &measured : &silent;
  return *device == &measured || at == "00000000:02:00.0" ? kSuccess : kNotFound;
}

__attribute__((visibility("default"))) int nvmlDeviceGetTotalEnergyConsumption(void* device,
                                                                               unsigned long long* millijoules) {
  if (device != &measured) return kNotSupported;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto updates = std::chrono::duration_cast<std::chrono::milliseconds>(now).count() / 5;
  *millijoules = static_cast<unsigned long long>(updates) * 5 * 250;
  return kSuccess;
}
}
