#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "target/target.h"

namespace heddle {

// The part of NVIDIA's driver interface that Heddle calls. It is declared here, so that the build does not need the
// headers of a CUDA toolkit. The library is loaded on first use: $HEDDLE_CUDA_DRIVER if set, else libcuda.so.1. An
// emulator identifies itself by exporting the symbol kCudaEmulatorSymbol.
inline constexpr const char* kCudaEmulatorSymbol = "heddle_cuda_emulator";

// Structs with the layout that the driver's interface prescribes.
struct CudaLaunchAttribute {
  static constexpr int kCooperative = 2, kClusterDimension = 4, kProgrammaticSerialization = 6;
  int id = 0, padding = 0;
  uint32_t value[16] = {};  // a union of 64 bytes: a flag, or three extents
};
struct CudaLaunchConfig {
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  void* stream = nullptr;
  CudaLaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
static_assert(sizeof(CudaLaunchAttribute) == 72 && sizeof(CudaLaunchConfig) == 56);

struct CudaDriver {
  using Device = int;
  using DevicePtr = uint64_t;
  using Handle = void*;  // context, module, function, stream, event, graph
  using Result = int;

  Result (*init)(unsigned flags);
  Result (*driver_version)(int* version);
  Result (*device_count)(int* count);
  Result (*device_get)(Device* device, int ordinal);
  Result (*device_name)(char* name, int bytes, Device device);
  Result (*device_memory)(size_t* bytes, Device device);
  Result (*device_attribute)(int* value, int attribute, Device device);
  Result (*error_name)(Result result, const char** name);
  Result (*error_text)(Result result, const char** text);
  Result (*primary_retain)(Handle* context, Device device);
  Result (*primary_release)(Device device);
  Result (*context_set)(Handle context);
  Result (*reset_persisting_l2)();
  Result (*memory_info)(size_t* free, size_t* total);
  Result (*malloc)(DevicePtr* pointer, size_t bytes);
  Result (*free)(DevicePtr pointer);
  Result (*copy_in)(DevicePtr to, const void* from, size_t bytes);
  Result (*copy_out)(void* to, DevicePtr from, size_t bytes);
  Result (*host_alloc)(void** pointer, size_t bytes, unsigned flags);
  Result (*host_free)(void* pointer);
  Result (*copy_in_async)(DevicePtr to, const void* from, size_t bytes, Handle stream);
  Result (*copy_out_async)(void* to, DevicePtr from, size_t bytes, Handle stream);
  Result (*copy_async)(DevicePtr to, DevicePtr from, size_t bytes, Handle stream);
  Result (*set_d8_async)(DevicePtr to, unsigned char value, size_t count, Handle stream);
  Result (*set_d32_async)(DevicePtr to, unsigned value, size_t count, Handle stream);
  Result (*module_load)(Handle* module, const void* image);
  Result (*module_unload)(Handle module);
  Result (*module_function)(Handle* function, Handle module, const char* name);
  Result (*function_attribute)(Handle function, int attribute, int value);
  Result (*launch)(const CudaLaunchConfig* config, Handle function, void** arguments, void** extra);
  Result (*stream_create)(Handle* stream, unsigned flags);
  Result (*stream_destroy)(Handle stream);
  Result (*stream_synchronize)(Handle stream);
  Result (*stream_wait)(Handle stream, Handle event, unsigned flags);
  Result (*capture_begin)(Handle stream, int mode);
  Result (*capture_end)(Handle stream, Handle* graph);
  Result (*capture_state)(Handle stream, int* state);  // state 0: the stream is not being captured
  Result (*capture_info)(Handle stream, int* state, uint64_t* id, Handle* graph, const Handle** dependencies,
                         size_t* dependency_count);
  Result (*user_object_create)(Handle* object, void* pointer, void (*destroy)(void* pointer), unsigned count,
                               unsigned flags);
  Result (*user_object_release)(Handle object, unsigned count);
  Result (*graph_retain_object)(Handle graph, Handle object, unsigned count, unsigned flags);
  Result (*graph_instantiate)(Handle* executable, Handle graph, unsigned long long flags);
  Result (*graph_launch)(Handle executable, Handle stream);
  Result (*graph_destroy)(Handle graph);
  Result (*graph_exec_destroy)(Handle executable);
  Result (*event_create)(Handle* event, unsigned flags);
  Result (*event_destroy)(Handle event);
  Result (*event_record)(Handle event, Handle stream);
  Result (*event_record_flags)(Handle event, Handle stream, unsigned flags);
  Result (*event_synchronize)(Handle event);
  Result (*event_elapsed)(float* milliseconds, Handle start, Handle end);
  Result (*tensor_map)(void* map, int type, unsigned rank, void* base, const uint64_t* extents, const uint64_t* strides,
                       const uint32_t* box, const uint32_t* element_strides, int interleave, int swizzle, int promotion,
                       int fill);
  Result (*tensor_map_windows)(void* map, int type, unsigned rank, void* base, const uint64_t* extents,
                               const uint64_t* strides, const int* first, const int* last, uint32_t channels,
                               uint32_t pixels, const uint32_t* element_strides, int interleave, int swizzle,
                               int promotion, int fill);

  bool emulated = false;

  // Returns the driver of this machine. If there is no driver, returns null and, if `why` is not null, stores the
  // reason in `*why`.
  static const CudaDriver* find(std::string* why = nullptr);
  // Returns the driver of this machine. Throws kDevice if there is no driver.
  static const CudaDriver& get();

  // Throws kDevice if `result` is an error, or kOutOfMemory if memory is exhausted. `what` names the call.
  void check(Result result, const char* what) const;
};

struct CudaDevice {
  int ordinal = 0;
  std::string name;
  uint64_t memory_bytes = 0;
  int driver_version = 0;  // 13000: CUDA 13.0
  CudaTarget target;

  DeviceIdentity identity() const;
};

// The GPUs of this machine; empty if there is no driver. Never throws.
std::vector<CudaDevice> cuda_devices();

}  // namespace heddle
