#include "target/energy/nvml.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/check.h"

namespace heddle {
namespace {

// The part of NVML that Heddle calls, declared here, so that the build needs no headers of a CUDA toolkit.
struct Nvml {
  using Result = int;  // 0: success
  using Device = void*;
  Result (*init)();
  const char* (*error_text)(Result result);
  Result (*device_at)(const char* pci_address, Device* device);
  Result (*energy)(Device device, unsigned long long* millijoules);

  std::string why;  // why it cannot be used; empty: it can

  void check(Result result, const char* what) const {
    if (result == 0) return;
    fail(ErrorCode::kDevice, EnergyCounter::kWhere, fmt::format("{}: {} ({})", what, error_text(result), result));
  }
};

template <typename Function>
bool find_symbol(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Nvml open_nvml() {
  Nvml nvml{};
  const char* named = std::getenv("HEDDLE_NVML");
  const char* file = named != nullptr ? named : "libnvidia-ml.so.1";
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    nvml.why = fmt::format("NVML cannot be loaded: {}", ::dlerror());
  } else if (!find_symbol(library, "nvmlInit_v2", nvml.init) ||
             !find_symbol(library, "nvmlErrorString", nvml.error_text) ||
             !find_symbol(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.device_at) ||
             !find_symbol(library, "nvmlDeviceGetTotalEnergyConsumption", nvml.energy)) {
    nvml.why = fmt::format("{} is not NVML or too old for an energy counter", file);
  } else if (const Nvml::Result result = nvml.init(); result != 0) {
    nvml.why = fmt::format("nvmlInit: {} ({})", nvml.error_text(result), result);
  }
  return nvml;
}

class NvmlCounter : public EnergyCounter {
 public:
  NvmlCounter(const Nvml& nvml, Nvml::Device device) : EnergyCounter("NVML"), nvml_(nvml), device_(device) {}

  double joules() override {
    unsigned long long millijoules = 0;
    nvml_.check(nvml_.energy(device_, &millijoules), "nvmlDeviceGetTotalEnergyConsumption");
    return static_cast<double>(millijoules) * 1e-3;
  }

 private:
  const Nvml& nvml_;
  const Nvml::Device device_;
};

}  // namespace

std::unique_ptr<EnergyCounter> nvml_counter(const std::string& pci_address) {
  static const Nvml nvml = open_nvml();
  if (!nvml.why.empty()) fail(ErrorCode::kDevice, EnergyCounter::kWhere, nvml.why);
  Nvml::Device device = nullptr;
  nvml.check(nvml.device_at(pci_address.c_str(), &device), "nvmlDeviceGetHandleByPciBusId");
  auto counter = std::make_unique<NvmlCounter>(nvml, device);
  counter->joules();  // a GPU before Volta has no counter
  return counter;
}

}  // namespace heddle
