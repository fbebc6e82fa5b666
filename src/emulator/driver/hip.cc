// HIP's runtime, as src/target/hip_driver.cc loads it: the functions of the CUDA driver under HIP's names.
#include <cstring>

#include "emulator/driver/driver.h"

using namespace heddle::emulator;

namespace {

constexpr int kLdsBytes = 64 << 10;                                              // of a block
constexpr int kComputeUnits = 63, kMultiprocessors = 16, kMaxDynamicShared = 8;  // HIP's, CUDA's

}  // namespace

// Says that this is no runtime of a GPU.
HEDDLE_EXPORT int heddle_hip_emulator() {
  return 1;
}

extern "C" {
Result cuDeviceGetAttribute(int* value, int attribute, int device);
Result cuModuleGetFunction(void** function, void* module, const char* name);
Result cuFuncSetAttribute(void* function, int attribute, int value);
Result cuMemAlloc_v2(uint64_t* pointer, size_t bytes);
Result cuMemFree_v2(uint64_t pointer);
}

HEDDLE_EXPORT Result hipRuntimeGetVersion(int* version) {
  *version = 60400000;
  return kSuccess;
}
HEDDLE_EXPORT Result hipSetDevice(int ordinal) {
  return ordinal == 0 ? kSuccess : kInvalidDevice;
}
// The name of the architecture is at some place among zeros, as in every version of HIP's structure.
HEDDLE_EXPORT Result hipGetDevicePropertiesR0600(void* properties, int ordinal) {
  constexpr size_t kBytes = 1472, kArchitecture = 1160;
  if (ordinal != 0) return kInvalidDevice;
  const std::string name = Settings::now().gfx + ":sramecc+:xnack-";
  std::memset(properties, 0, kBytes);
  std::memcpy(static_cast<char*>(properties) + kArchitecture, name.c_str(), name.size());
  return kSuccess;
}
HEDDLE_EXPORT Result hipDeviceGetAttribute(int* value, int attribute, int device) {
  return attribute == kComputeUnits ? cuDeviceGetAttribute(value, kMultiprocessors, device) : kInvalidValue;
}
HEDDLE_EXPORT Result hipModuleGetFunction(void** function, void* module, const char* name) {
  const Result result = cuModuleGetFunction(function, module, name);
  return result == kSuccess ? cuFuncSetAttribute(*function, kMaxDynamicShared, kLdsBytes) : result;
}
HEDDLE_EXPORT Result hipMalloc(void** pointer, size_t bytes) {
  return cuMemAlloc_v2(reinterpret_cast<uint64_t*>(pointer), bytes);
}
HEDDLE_EXPORT Result hipFree(void* pointer) {
  return cuMemFree_v2(reinterpret_cast<uint64_t>(pointer));
}

// A function of CUDA's driver with the parameters of HIP's. It jumps there, since an alias has to be in the same unit.
#define HEDDLE_SAME(HIP, CUDA) \
  asm(".text\n.globl " #HIP "\n.type " #HIP ", @function\n" #HIP ": jmp " #CUDA "@PLT\n.size " #HIP ", . - " #HIP "\n");
HEDDLE_SAME(hipInit, cuInit)
HEDDLE_SAME(hipGetDeviceCount, cuDeviceGetCount)
HEDDLE_SAME(hipDeviceGet, cuDeviceGet)
HEDDLE_SAME(hipDeviceGetName, cuDeviceGetName)
HEDDLE_SAME(hipDeviceTotalMem, cuDeviceTotalMem_v2)
HEDDLE_SAME(hipDrvGetErrorName, cuGetErrorName)
HEDDLE_SAME(hipDrvGetErrorString, cuGetErrorString)
HEDDLE_SAME(hipMemGetInfo, cuMemGetInfo_v2)
HEDDLE_SAME(hipMemcpyHtoD, cuMemcpyHtoD_v2)
HEDDLE_SAME(hipMemcpyDtoH, cuMemcpyDtoH_v2)
HEDDLE_SAME(hipHostMalloc, cuMemHostAlloc)
HEDDLE_SAME(hipHostFree, cuMemFreeHost)
HEDDLE_SAME(hipMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2)
HEDDLE_SAME(hipMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2)
HEDDLE_SAME(hipMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2)
HEDDLE_SAME(hipMemsetD8Async, cuMemsetD8Async)
HEDDLE_SAME(hipMemsetD32Async, cuMemsetD32Async)
HEDDLE_SAME(hipModuleLoadData, cuModuleLoadData)
HEDDLE_SAME(hipModuleUnload, cuModuleUnload)
HEDDLE_SAME(hipModuleLaunchKernel, cuLaunchKernel)
HEDDLE_SAME(hipModuleLaunchCooperativeKernel, cuLaunchCooperativeKernel)
HEDDLE_SAME(hipStreamCreateWithFlags, cuStreamCreate)
HEDDLE_SAME(hipStreamDestroy, cuStreamDestroy_v2)
HEDDLE_SAME(hipStreamSynchronize, cuStreamSynchronize)
HEDDLE_SAME(hipStreamWaitEvent, cuStreamWaitEvent)
HEDDLE_SAME(hipStreamBeginCapture, cuStreamBeginCapture_v2)
HEDDLE_SAME(hipStreamEndCapture, cuStreamEndCapture)
HEDDLE_SAME(hipStreamIsCapturing, cuStreamIsCapturing)
HEDDLE_SAME(hipStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2)
HEDDLE_SAME(hipUserObjectCreate, cuUserObjectCreate)
HEDDLE_SAME(hipUserObjectRelease, cuUserObjectRelease)
HEDDLE_SAME(hipGraphRetainUserObject, cuGraphRetainUserObject)
HEDDLE_SAME(hipGraphInstantiateWithFlags, cuGraphInstantiateWithFlags)
HEDDLE_SAME(hipGraphLaunch, cuGraphLaunch)
HEDDLE_SAME(hipGraphDestroy, cuGraphDestroy)
HEDDLE_SAME(hipGraphExecDestroy, cuGraphExecDestroy)
HEDDLE_SAME(hipEventCreateWithFlags, cuEventCreate)
HEDDLE_SAME(hipEventDestroy, cuEventDestroy_v2)
HEDDLE_SAME(hipEventRecord, cuEventRecord)
HEDDLE_SAME(hipEventRecordWithFlags, cuEventRecordWithFlags)
HEDDLE_SAME(hipEventSynchronize, cuEventSynchronize)
HEDDLE_SAME(hipEventElapsedTime, cuEventElapsedTime)
#undef HEDDLE_SAME
