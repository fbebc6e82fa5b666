// A CUDA driver whose functions do nothing: what is left of a call is the cost of Heddle's own code. It calls itself an
// emulator, so that kernels are compiled by the host's compiler. It counts calls.
#include <cstddef>
#include <cstdint>

namespace {

constexpr int kSuccess = 0, kSmCount = 16, kL2Bytes = 38, kMajor = 75, kMinor = 76, kRegistersPerSm = 82,
              kSharedOptIn = 97;
constexpr size_t kMemory = size_t{80} << 30;
uint64_t next_address = uint64_t{1} << 32;

int set(void** handle) {
  static int object = 0;
  *handle = &object;
  return kSuccess;
}

// The calls of one function; all of them are in a list.
struct Count {
  explicit Count(const char* function) : name(function), next(first) { first = this; }
  const char* name;
  uint64_t calls = 0;
  Count* next;
  inline static Count* first = nullptr;
};

}  // namespace

extern "C" {

// Tells the calls of each function that was called so far. For one thread.
void heddle_stub_counts(void (*tell)(const char* name, uint64_t calls)) {
  for (const Count* count = Count::first; count != nullptr; count = count->next) tell(count->name, count->calls);
}

int heddle_cuda_emulator = 1;

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}
int cuDeviceGet(int* device, int) {
  *device = 0;
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int which, int) {
  *value = which == kMajor            ? 9
           : which == kMinor          ? 0
           : which == kSmCount        ? 132
           : which == kL2Bytes        ? 60 << 20
           : which == kRegistersPerSm ? 65536
           : which == kSharedOptIn    ? 232448
                                      : 0;
  return kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = kMemory;
  return kSuccess;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = kMemory;
  return kSuccess;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  return set(context);
}
int cuModuleLoadData(void** module, const void*) {
  return set(module);
}
int cuModuleGetFunction(void** function, void*, const char*) {
  return set(function);
}
int cuStreamCreate(void** stream, unsigned) {
  return set(stream);
}
int cuEventCreate(void** event, unsigned) {
  return set(event);
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  static Count count("cuMemAlloc_v2");
  ++count.calls;
  *address = next_address;
  next_address += (bytes + 255) / 256 * 256 + 256;
  return kSuccess;
}
int cuMemHostAlloc(void** pointer, size_t, unsigned) {
  static Count count("cuMemHostAlloc");
  ++count.calls;
  return set(pointer);
}
int cuLaunchKernelEx(const void*, void*, void**, void**) {
  static Count count("cuLaunchKernelEx");
  ++count.calls;
  return kSuccess;
}

#define HEDDLE_STUB(name)      \
  int name(...) {              \
    static Count count(#name); \
    ++count.calls;             \
    return kSuccess;           \
  }
HEDDLE_STUB(cuInit)
HEDDLE_STUB(cuDeviceGetName)
HEDDLE_STUB(cuGetErrorName)
HEDDLE_STUB(cuGetErrorString)
HEDDLE_STUB(cuDevicePrimaryCtxRelease_v2)
HEDDLE_STUB(cuCtxSetCurrent)
HEDDLE_STUB(cuCtxResetPersistingL2Cache)
HEDDLE_STUB(cuMemFree_v2)
HEDDLE_STUB(cuMemcpyHtoD_v2)
HEDDLE_STUB(cuMemcpyDtoH_v2)
HEDDLE_STUB(cuMemFreeHost)
HEDDLE_STUB(cuMemcpyHtoDAsync_v2)
HEDDLE_STUB(cuMemcpyDtoHAsync_v2)
HEDDLE_STUB(cuMemcpyDtoDAsync_v2)
HEDDLE_STUB(cuMemsetD8Async)
HEDDLE_STUB(cuMemsetD32Async)
HEDDLE_STUB(cuModuleUnload)
HEDDLE_STUB(cuFuncSetAttribute)
HEDDLE_STUB(cuStreamDestroy_v2)
HEDDLE_STUB(cuStreamSynchronize)
HEDDLE_STUB(cuStreamBeginCapture_v2)
HEDDLE_STUB(cuStreamEndCapture)
HEDDLE_STUB(cuStreamIsCapturing)
HEDDLE_STUB(cuStreamGetCaptureInfo_v2)
HEDDLE_STUB(cuUserObjectCreate)
HEDDLE_STUB(cuUserObjectRelease)
HEDDLE_STUB(cuGraphRetainUserObject)
HEDDLE_STUB(cuStreamWaitEvent)
HEDDLE_STUB(cuGraphInstantiateWithFlags)
HEDDLE_STUB(cuGraphLaunch)
HEDDLE_STUB(cuGraphDestroy)
HEDDLE_STUB(cuGraphExecDestroy)
HEDDLE_STUB(cuEventDestroy_v2)
HEDDLE_STUB(cuEventRecord)
HEDDLE_STUB(cuEventRecordWithFlags)
HEDDLE_STUB(cuEventSynchronize)
HEDDLE_STUB(cuEventElapsedTime)
HEDDLE_STUB(cuTensorMapEncodeTiled)
HEDDLE_STUB(cuTensorMapEncodeIm2col)
}
