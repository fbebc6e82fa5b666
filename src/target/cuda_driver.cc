#include "target/cuda_driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/check.h"
#include "base/interface/option.h"
#include "target/calibration.h"

namespace heddle {
namespace {

// Numbers of the driver's interface.
constexpr int kSuccess = 0, kOutOfMemory = 2, kOldestDriver = 12000;
constexpr int kSmClock = 13, kSmCount = 16, kMemoryClock = 36, kBusBits = 37, kL2Bytes = 38, kMajor = 75, kMinor = 76;
constexpr int kRegistersPerSm = 82, kSharedOptIn = 97;

struct Loaded {
  CudaDriver driver{};
  std::string why;  // empty: there is one
};

template <typename F>
bool load(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

// Empty, or the symbol that is missing.
std::string load_all(void* library, CudaDriver& d) {
  std::string missing;
  const auto need = [&](const char* name, auto& function) {
    if (!load(library, name, function) && missing.empty()) missing = name;
  };
  need("cuInit", d.init);
  need("cuDriverGetVersion", d.driver_version);
  need("cuDeviceGetCount", d.device_count);
  need("cuDeviceGet", d.device_get);
  need("cuDeviceGetName", d.device_name);
  need("cuDeviceTotalMem_v2", d.device_memory);
  need("cuDeviceGetAttribute", d.device_attribute);
  need("cuGetErrorName", d.error_name);
  need("cuGetErrorString", d.error_text);
  need("cuDevicePrimaryCtxRetain", d.primary_retain);
  need("cuDevicePrimaryCtxRelease_v2", d.primary_release);
  need("cuCtxSetCurrent", d.context_set);
  need("cuCtxResetPersistingL2Cache", d.reset_persisting_l2);
  need("cuMemGetInfo_v2", d.memory_info);
  need("cuMemAlloc_v2", d.malloc);
  need("cuMemFree_v2", d.free);
  need("cuMemcpyHtoD_v2", d.copy_in);
  need("cuMemcpyDtoH_v2", d.copy_out);
  need("cuMemHostAlloc", d.host_alloc);
  need("cuMemFreeHost", d.host_free);
  need("cuMemcpyHtoDAsync_v2", d.copy_in_async);
  need("cuMemcpyDtoHAsync_v2", d.copy_out_async);
  need("cuMemcpyDtoDAsync_v2", d.copy_async);
  need("cuMemsetD8Async", d.set_d8_async);
  need("cuMemsetD32Async", d.set_d32_async);
  need("cuModuleLoadData", d.module_load);
  need("cuModuleUnload", d.module_unload);
  need("cuModuleGetFunction", d.module_function);
  need("cuFuncSetAttribute", d.function_attribute);
  need("cuLaunchKernelEx", d.launch);
  need("cuStreamCreate", d.stream_create);
  need("cuStreamDestroy_v2", d.stream_destroy);
  need("cuStreamSynchronize", d.stream_synchronize);
  need("cuStreamWaitEvent", d.stream_wait);
  need("cuStreamBeginCapture_v2", d.capture_begin);
  need("cuStreamEndCapture", d.capture_end);
  need("cuStreamIsCapturing", d.capture_state);
  need("cuStreamGetCaptureInfo_v2", d.capture_info);
  need("cuUserObjectCreate", d.user_object_create);
  need("cuUserObjectRelease", d.user_object_release);
  need("cuGraphRetainUserObject", d.graph_retain_object);
  need("cuGraphInstantiateWithFlags", d.graph_instantiate);
  need("cuGraphLaunch", d.graph_launch);
  need("cuGraphDestroy", d.graph_destroy);
  need("cuGraphExecDestroy", d.graph_exec_destroy);
  need("cuEventCreate", d.event_create);
  need("cuEventDestroy_v2", d.event_destroy);
  need("cuEventRecord", d.event_record);
  need("cuEventRecordWithFlags", d.event_record_flags);
  need("cuEventSynchronize", d.event_synchronize);
  need("cuEventElapsedTime", d.event_elapsed);
  need("cuTensorMapEncodeTiled", d.tensor_map);
  need("cuTensorMapEncodeIm2col", d.tensor_map_windows);
  return missing;
}

// The library stays loaded: its threads and contexts end with the process.
Loaded load_driver() {
  Loaded loaded;
  const char* chosen = std::getenv("HEDDLE_CUDA_DRIVER");
  const bool named = chosen != nullptr && *chosen != '\0';
  void* library = ::dlopen(named ? chosen : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.why = named ? fmt::format("HEDDLE_CUDA_DRIVER names {}, which cannot be loaded: {}", chosen, ::dlerror())
                       : "libcuda.so.1 cannot be loaded: there is no NVIDIA driver";
    return loaded;
  }
  loaded.driver.emulated = ::dlsym(library, kCudaEmulatorSymbol) != nullptr;
  if (const std::string missing = load_all(library, loaded.driver); !missing.empty()) {
    loaded.why = fmt::format("the NVIDIA driver has no {}: it is older than CUDA 12.0", missing);
    return loaded;
  }
  int version = 0;
  if (loaded.driver.driver_version(&version) == kSuccess && version < kOldestDriver) {
    loaded.why = fmt::format("the NVIDIA driver is for CUDA {}.{}: 12.0 or later is needed", version / 1000,
                             version % 1000 / 10);
    return loaded;
  }
  if (const int result = loaded.driver.init(0); result != kSuccess) {
    const char* name = nullptr;
    loaded.driver.error_name(result, &name);
    loaded.why = fmt::format("cuInit failed with {} ({})", result, name == nullptr ? "unknown" : name);
  }
  return loaded;
}

const Loaded& driver_of_process() {
  static const Loaded loaded = load_driver();
  return loaded;
}

}  // namespace

const CudaDriver* CudaDriver::find(std::string* why) {
  const Loaded& loaded = driver_of_process();
  if (why != nullptr) *why = loaded.why;
  return loaded.why.empty() ? &loaded.driver : nullptr;
}

const CudaDriver& CudaDriver::get() {
  std::string why;
  if (const CudaDriver* driver = find(&why)) return *driver;
  fail(ErrorCode::kDevice, "cuda", why,
       fmt::format("Use {}, or install a driver of CUDA 12 or later", option::target("cpu")));
}

void CudaDriver::check(Result result, const char* what) const {
  if (result == kSuccess) return;
  const char *name = nullptr, *text = nullptr;
  error_name(result, &name);
  error_text(result, &text);
  const std::string why =
      fmt::format("{}: {} ({})", result, name == nullptr ? "unknown" : name, text == nullptr ? "" : text);
  if (result == kOutOfMemory) {
    size_t free_bytes = 0, total = 0;
    memory_info(&free_bytes, &total);
    fail(ErrorCode::kOutOfMemory, what, fmt::format("{}; {} of {} bytes are free", why, free_bytes, total));
  }
  fail(ErrorCode::kDevice, what, why);
}

Target Target::cuda_device(int ordinal, int threads) {
  CudaDriver::get();
  for (const CudaDevice& device : cuda_devices()) {
    if (device.ordinal != ordinal) continue;
    Target target = host_cpu(threads);
    target.kind = TargetKind::kCuda;
    target.cuda = device.target;
    return target;
  }
  fail(ErrorCode::kDevice, fmt::format("cuda:{}", ordinal), "there is no such GPU", "`heddle devices` lists them");
}

DeviceIdentity CudaDevice::identity() const {
  return {name, fmt::format("cuda {}", driver_version)};
}

std::vector<CudaDevice> cuda_devices() {
  std::vector<CudaDevice> devices;
  const CudaDriver* driver = CudaDriver::find();
  int count = 0;
  if (driver == nullptr || driver->device_count(&count) != kSuccess) return devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CudaDriver::Device device = 0;
    if (driver->device_get(&device, ordinal) != kSuccess) continue;
    const auto attribute = [&](int which, int fallback) {
      int value = 0;
      return driver->device_attribute(&value, which, device) == kSuccess ? value : fallback;
    };
    CudaDevice found;
    found.ordinal = ordinal;
    char name[256] = {};
    if (driver->device_name(name, sizeof(name) - 1, device) == kSuccess) found.name = name;
    size_t bytes = 0;
    if (driver->device_memory(&bytes, device) == kSuccess) found.memory_bytes = bytes;
    driver->driver_version(&found.driver_version);
    CudaTarget& target = found.target;
    target.memory_bytes = static_cast<int64_t>(found.memory_bytes);
    target.emulated = driver->emulated;
    target.sm = attribute(kMajor, 0) * 10 + attribute(kMinor, 0);
    target.sms = attribute(kSmCount, target.sms);
    target.l2_bytes = attribute(kL2Bytes, static_cast<int>(target.l2_bytes));
    target.registers_per_sm = attribute(kRegistersPerSm, target.registers_per_sm);
    target.shared_bytes_per_block = attribute(kSharedOptIn, static_cast<int>(target.shared_bytes_per_block));
    if (const auto rates = cuda_calibration(found.name); rates && !target.emulated) {
      target.model = calibrated_model(found.name, target.sm, target.sms, *rates);
      devices.push_back(std::move(found));
      continue;
    }
    const double bus_bytes = attribute(kBusBits, 0) / 8.0;
    // Clocks are in kHz; memory moves data at both edges of its clock.
    target.model = model_of(found.name, target.sm,
                            {.sms = static_cast<double>(target.sms),
                             .boost_ghz = attribute(kSmClock, 0) * 1e-6,
                             .memory_tbps = 2 * bus_bytes * attribute(kMemoryClock, 0) * 1e-9});
    devices.push_back(std::move(found));
  }
  return devices;
}

}  // namespace heddle
