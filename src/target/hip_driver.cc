#include "target/hip_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "base/check.h"
#include "base/interface/option.h"

namespace heddle {
namespace {

using Handle = CudaDriver::Handle;
using Result = CudaDriver::Result;

// Numbers of HIP's interface.
constexpr Result kHipSuccess = 0, kHipNotSupported = 801;
constexpr int kComputeUnits = 63;  // hipDeviceAttributeMultiprocessorCount
constexpr const char* kEmulatorSymbol = "heddle_hip_emulator";

// The functions that have other parameters in HIP.
struct Adapted {
  Result (*set_device)(int ordinal);
  Result (*properties)(void* properties, int ordinal);
  Result (*malloc)(void** pointer, size_t bytes);
  Result (*free)(void* pointer);
  Result (*launch)(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, Handle stream, void** arguments,
                   void** extra);
  Result (*launch_cooperative)(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared_bytes, Handle stream,
                               void** arguments);
};

struct LoadedHip {
  CudaDriver driver{};
  Adapted hip{};
  std::string why;  // empty: there is one
};

const LoadedHip& runtime_of_process();

// A device is current on a thread; there are no contexts. A handle is the device's number plus one.
Result retain(Handle* context, int device) {
  *context = reinterpret_cast<Handle>(static_cast<uintptr_t>(device) + 1);  // NOLINT(performance-no-int-to-ptr)
  return runtime_of_process().hip.set_device(device);
}
Result release(int) {
  return kHipSuccess;
}
Result set_context(Handle context) {
  return runtime_of_process().hip.set_device(static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1);
}
Result reset_l2() {
  return kHipNotSupported;
}
Result allocate(uint64_t* pointer, size_t bytes) {
  void* at = nullptr;
  const Result result = runtime_of_process().hip.malloc(&at, bytes);
  *pointer = reinterpret_cast<uint64_t>(at);
  return result;
}
Result release_memory(uint64_t pointer) {
  return runtime_of_process().hip.free(reinterpret_cast<void*>(pointer));  // NOLINT(performance-no-int-to-ptr)
}
// Kernels may use all of the LDS that a block can have.
Result set_attribute(Handle, int, int) {
  return kHipSuccess;
}
Result launch_by_hip(const CudaLaunchConfig* c, Handle function, void** arguments, void** extra) {
  const Adapted& hip = runtime_of_process().hip;
  bool cooperative = false;
  for (unsigned i = 0; i < c->attribute_count; ++i) {
    if (c->attributes[i].id != CudaLaunchAttribute::kCooperative) return kHipNotSupported;
    cooperative = true;
  }
  if (cooperative) {
    return hip.launch_cooperative(function, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2],
                                  c->shared_bytes, c->stream, arguments);
  }
  return hip.launch(function, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2],
                    c->shared_bytes, c->stream, arguments, extra);
}
// HIP before 7.0 has no flags: an event of a capture is no node of its graph.
Result record_with_flags(Handle, Handle, unsigned) {
  return kHipNotSupported;
}
Result tensor_map(void*, int, unsigned, void*, const uint64_t*, const uint64_t*, const uint32_t*, const uint32_t*, int,
                  int, int, int) {
  return kHipNotSupported;
}
Result tensor_map_windows(void*, int, unsigned, void*, const uint64_t*, const uint64_t*, const int*, const int*,
                          uint32_t, uint32_t, const uint32_t*, int, int, int, int) {
  return kHipNotSupported;
}

// Empty, or the symbol that is missing.
std::string load_hip(void* library, LoadedHip& loaded) {
  CudaDriver& d = loaded.driver;
  std::string missing;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    return function != nullptr;
  };
  const auto need = [&](const char* name, auto& function) {
    if (!find(name, function) && missing.empty()) missing = name;
  };
  need("hipInit", d.init);
  need("hipRuntimeGetVersion", d.driver_version);
  need("hipGetDeviceCount", d.device_count);
  need("hipDeviceGet", d.device_get);
  need("hipDeviceGetName", d.device_name);
  need("hipDeviceTotalMem", d.device_memory);
  need("hipDeviceGetAttribute", d.device_attribute);
  need("hipDrvGetErrorName", d.error_name);
  need("hipDrvGetErrorString", d.error_text);
  need("hipMemGetInfo", d.memory_info);
  need("hipMemcpyHtoD", d.copy_in);
  need("hipMemcpyDtoH", d.copy_out);
  need("hipHostMalloc", d.host_alloc);
  need("hipHostFree", d.host_free);
  need("hipMemcpyHtoDAsync", d.copy_in_async);
  need("hipMemcpyDtoHAsync", d.copy_out_async);
  need("hipMemcpyDtoDAsync", d.copy_async);
  need("hipMemsetD8Async", d.set_d8_async);
  need("hipMemsetD32Async", d.set_d32_async);
  need("hipModuleLoadData", d.module_load);
  need("hipModuleUnload", d.module_unload);
  need("hipModuleGetFunction", d.module_function);
  need("hipStreamCreateWithFlags", d.stream_create);
  need("hipStreamDestroy", d.stream_destroy);
  need("hipStreamSynchronize", d.stream_synchronize);
  need("hipStreamWaitEvent", d.stream_wait);
  need("hipStreamBeginCapture", d.capture_begin);
  need("hipStreamEndCapture", d.capture_end);
  need("hipStreamIsCapturing", d.capture_state);
  need("hipStreamGetCaptureInfo_v2", d.capture_info);
  need("hipUserObjectCreate", d.user_object_create);
  need("hipUserObjectRelease", d.user_object_release);
  need("hipGraphRetainUserObject", d.graph_retain_object);
  need("hipGraphInstantiateWithFlags", d.graph_instantiate);
  need("hipGraphLaunch", d.graph_launch);
  need("hipGraphDestroy", d.graph_destroy);
  need("hipGraphExecDestroy", d.graph_exec_destroy);
  need("hipEventCreateWithFlags", d.event_create);
  need("hipEventDestroy", d.event_destroy);
  need("hipEventRecord", d.event_record);
  need("hipEventSynchronize", d.event_synchronize);
  need("hipEventElapsedTime", d.event_elapsed);
  need("hipSetDevice", loaded.hip.set_device);
  need("hipMalloc", loaded.hip.malloc);
  need("hipFree", loaded.hip.free);
  need("hipModuleLaunchKernel", loaded.hip.launch);
  need("hipModuleLaunchCooperativeKernel", loaded.hip.launch_cooperative);
  if (!find("hipGetDevicePropertiesR0600", loaded.hip.properties)) {
    need("hipGetDeviceProperties", loaded.hip.properties);
  }
  if (!find("hipEventRecordWithFlags", d.event_record_flags)) d.event_record_flags = &record_with_flags;
  d.primary_retain = &retain;
  d.primary_release = &release;
  d.context_set = &set_context;
  d.reset_persisting_l2 = &reset_l2;
  d.malloc = &allocate;
  d.free = &release_memory;
  d.function_attribute = &set_attribute;
  d.launch = &launch_by_hip;
  d.tensor_map = &tensor_map;
  d.tensor_map_windows = &tensor_map_windows;
  return missing;
}

LoadedHip load_runtime() {
  LoadedHip loaded;
  const char* chosen = std::getenv("HEDDLE_HIP_DRIVER");
  const bool named = chosen != nullptr && *chosen != '\0';
  void* library = nullptr;
  if (named) {
    library = ::dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      loaded.why = fmt::format("HEDDLE_HIP_DRIVER names {}, which cannot be loaded: {}", chosen, ::dlerror());
    }
  } else {
    for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}) {
      for (const char* folder : {"", "/opt/rocm/lib/"}) {
        if (library == nullptr) library = ::dlopen(fmt::format("{}{}", folder, name).c_str(), RTLD_NOW | RTLD_LOCAL);
      }
    }
    if (library == nullptr) {
      loaded.why = "libamdhip64.so (7, 6 or 5) cannot be loaded: there is no HIP runtime";
    }
  }
  if (library == nullptr) return loaded;
  loaded.driver.emulated = ::dlsym(library, kEmulatorSymbol) != nullptr;
  if (const std::string missing = load_hip(library, loaded); !missing.empty()) {
    loaded.why = fmt::format("libamdhip64 has no {}: it is older than ROCm 5.5", missing);
    return loaded;
  }
  if (const Result result = loaded.driver.init(0); result != kHipSuccess) {
    const char* name = nullptr;
    loaded.driver.error_name(result, &name);
    loaded.why = fmt::format("hipInit failed with {} ({})", result, name == nullptr ? "unknown" : name);
  }
  return loaded;
}

const LoadedHip& runtime_of_process() {
  static const LoadedHip loaded = load_runtime();
  return loaded;
}

// The architecture in a device's properties, "gfx942" of "gfx942:sramecc+:xnack-". The layout of the properties differs
// between versions of HIP, but nothing else in them begins with "gfx".
std::string architecture_of(int ordinal) {
  constexpr std::string_view kStart = "gfx";
  std::array<char, 1 << 14> properties{};
  if (runtime_of_process().hip.properties(properties.data(), ordinal) != kHipSuccess) return {};
  const std::string_view bytes(properties.data(), properties.size());
  for (size_t at = bytes.find(kStart); at != std::string_view::npos; at = bytes.find(kStart, at + 1)) {
    size_t end = at + kStart.size();
    while (end < bytes.size() && std::isxdigit(static_cast<unsigned char>(bytes[end])) != 0) ++end;
    if (end > at + kStart.size()) return std::string(bytes.substr(at, end - at));
  }
  return {};
}

}  // namespace

const CudaDriver* find_hip_driver(std::string* why) {
  const LoadedHip& loaded = runtime_of_process();
  if (why != nullptr) *why = loaded.why;
  return loaded.why.empty() ? &loaded.driver : nullptr;
}

const CudaDriver& hip_driver() {
  std::string why;
  if (const CudaDriver* driver = find_hip_driver(&why)) return *driver;
  fail(
      ErrorCode::kDevice, "hip", why,
      fmt::format("Install the HIP runtime of ROCm 5.5 or later (libamdhip64), name it in HEDDLE_HIP_DRIVER, or use {}",
                  option::target("cpu")));
}

DeviceIdentity HipDevice::identity() const {
  return {name, fmt::format("hip {}", runtime_version)};
}

std::vector<HipDevice> hip_devices() {
  std::vector<HipDevice> devices;
  const CudaDriver* driver = find_hip_driver();
  int count = 0;
  if (driver == nullptr || driver->device_count(&count) != kHipSuccess) return devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CudaDriver::Device device = 0;
    if (driver->device_get(&device, ordinal) != kHipSuccess) continue;
    const HipChip* chip = find_hip_chip(architecture_of(ordinal));
    if (chip == nullptr) continue;
    HipDevice found;
    found.ordinal = ordinal;
    found.target = HipTarget(*chip);
    char name[256] = {};
    if (driver->device_name(name, sizeof(name) - 1, device) == kHipSuccess) found.name = name;
    size_t bytes = 0;
    if (driver->device_memory(&bytes, device) == kHipSuccess) found.memory_bytes = bytes;
    driver->driver_version(&found.runtime_version);
    HipTarget& target = found.target;
    target.memory_bytes = static_cast<int64_t>(found.memory_bytes);
    target.emulated = driver->emulated;
    int units = 0;
    if (driver->device_attribute(&units, kComputeUnits, device) == kHipSuccess && units > 0) target.sms = units;
    // A chip with other numbers than the known one of its architecture has its rates in proportion.
    ChipFacts facts = chip->facts;
    facts.sms = target.sms;
    target.model = scaled(chip->model, chip->facts, facts);
    devices.push_back(std::move(found));
  }
  return devices;
}

Target Target::hip_device(int ordinal, int threads) {
  hip_driver();
  for (const HipDevice& device : hip_devices()) {
    if (device.ordinal == ordinal) return of_hip(device.target, threads);
  }
  fail(ErrorCode::kDevice, fmt::format("hip:{}", ordinal), "there is no such GPU, or its architecture is unknown",
       "`heddle devices` lists those that are known");
}

}  // namespace heddle
