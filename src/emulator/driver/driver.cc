// The device and its errors.
#include "emulator/driver/driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

namespace heddle::emulator {
namespace {

struct Named {
  Result result;
  const char* name;
  const char* text;
};
constexpr Named kResults[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialised, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kCooperativeTooLarge, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error"},
    {kUnknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

// Attributes of a device, with the driver's numbers. Negative: none such.
int attribute_of(int which, const Settings& s) {
  switch (which) {
    case 1:  // threads per block, then the extents of blocks and grids
    case 2:
    case 3:
      return 1024;
    case 4:
      return 64;
    case 5:
      return 0x7fffffff;
    case 6:
    case 7:
      return 65535;
    case 8:  // shared memory per block without asking for more
      return 48 << 10;
    case 10:
      return 32;
    case 12:  // registers per block, per SM
    case 82:
      return 65536;
    case 13:  // kHz
      return 1980000;
    case 16:
      return s.sms;
    case 33:  // PCI bus, device, domain
      return 1;
    case 34:
    case 50:
      return 0;
    case 36:
      return 2619000;
    case 37:
      return 6144;
    case 38:
      return static_cast<int>(s.l2_bytes());
    case 39:  // threads per SM
      return 2048;
    case 41:  // unified addressing, asynchronous engines, managed memory
    case 40:
    case 83:
      return 1;
    case 75:
      return s.sm / 10;
    case 76:
      return s.sm % 10;
    case 81:
      return static_cast<int>(s.shared_bytes_per_sm());
    case 95:  // cooperative launch
      return 1;
    case 97:
      return static_cast<int>(s.shared_bytes_per_block());
    case 106:  // blocks per SM
      return 32;
    case 111:  // reserved shared memory per block
      return 1024;
    case 115:  // memory pools
      return 0;
    case 120:  // cluster launch
      return s.sm >= 90;
    default:
      return -1;
  }
}

}  // namespace

// Never destroyed: threads may still call while the process ends.
Driver& Driver::get() {
  static Driver* one = new Driver();
  return *one;
}

Result Driver::error(Result result, std::string why) {
  detail = std::move(why);
  return result;
}

Result Driver::submit(void* stream, Operation operation) {
  auto* const per_thread = reinterpret_cast<void*>(uintptr_t{2});  // CU_STREAM_PER_THREAD, whose work never waits here
  operation.work.correlation = ApiCall::correlation();
  if (stream == per_thread) return perform(operation);
  auto* s = static_cast<Stream*>(stream);
  if (s == nullptr) {
    for (Stream* other : streams) {
      if (other->blocking) drain(other);
    }
    return perform(operation);
  }
  if (!streams.contains(s)) return error(kInvalidHandle, "there is no such stream");
  operation.work.stream = s->number;
  if (s->capture != nullptr) {
    Graph& graph = *s->capture;
    graph.operations.push_back(std::move(operation));
    if (const Observer* who = observer()) who->node_created(graph, graph.node(graph.operations.size() - 1));
    return kSuccess;
  }
  s->queue.push_back(std::move(operation));
  if (random.one_in(2)) drain(s);
  return kSuccess;
}

Result Driver::submit(void* stream, std::function<Result()> run, const Work& work) {
  Operation operation;
  operation.run = std::move(run);
  operation.work = work;
  return submit(stream, std::move(operation));
}

void Driver::drain(Stream* stream) {
  if (stream == nullptr || !streams.contains(stream) || stream->draining) return;
  stream->draining = true;
  for (bool begun = false; !stream->queue.empty();) {
    const Operation operation = std::move(stream->queue.front());
    stream->queue.pop_front();
    const bool next_begins = operation.launch && !stream->queue.empty() && stream->queue.front().begin;
    if (next_begins && !begun) races().number_next(static_cast<bool>(operation.begin));
    if (next_begins) stream->queue.front().begin();
    const Result result = perform(operation, begun);
    if (next_begins) turn = 1 - turn;
    begun = next_begins;
    if (result == kSuccess) continue;
    begun = false;
    if (stream->error == kSuccess) {
      stream->error = result;
      stream->detail = detail;
    }
    stream->queue.clear();
  }
  stream->draining = false;
}

Result Driver::perform(const Operation& operation, bool begun) {
  const Result result = operation.launch ? operation.launch(begun) : operation.run();
  if (!operation.launch) races().end_all();
  if (result != kSuccess || operation.work.kind == Work::Kind::kNone) return result;
  const Observer* const who = observer();
  if (who == nullptr) return result;
  Work work = operation.work;
  work.early = begun;
  who->done(work);
  return result;
}

void Driver::tell(Work work) {
  const Observer* const who = observer();
  if (who == nullptr) return;
  work.correlation = ApiCall::correlation();
  who->done(work);
}

void Driver::drain_all() {
  for (Stream* stream : streams) drain(stream);
}

Result Driver::wait(Stream* stream) {
  drain(stream);
  races().end_all();
  if (stream == nullptr || !streams.contains(stream) || stream->error == kSuccess) return kSuccess;
  return error(std::exchange(stream->error, kSuccess), stream->detail);
}

bool Driver::is_pinned(const void* pointer) const {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  auto after = pinned.upper_bound(address);
  if (after == pinned.begin()) return false;
  --after;
  return address - after->first < after->second;
}

Result Call::ready() const {
  if (!driver.initialised) return driver.error(kNotInitialised, "cuInit was not called");
  // A lost device stays lost as long as HEDDLE_EMULATED_FAULT says so; without it, it is back as for the next process.
  if (driver.lost && !Settings::now().fault.starts_with("lost")) driver.lost = false;
  if (driver.lost) return driver.error(kLaunchFailed, "the device is lost");
  return kSuccess;
}

namespace {

// The library of a tool that CUDA_INJECTION64_PATH names is loaded and told, as NVIDIA's driver does it.
void inject() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  void* library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW);
  if (library == nullptr) return;
  if (auto* begin = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"))) begin();
}

}  // namespace
}  // namespace heddle::emulator

using namespace heddle::emulator;

// Says that this is no driver of a GPU.
HEDDLE_EXPORT int heddle_cuda_emulator() {
  return 1;
}

HEDDLE_EXPORT Result cuInit(unsigned) {
  {
    const Call call;
    const std::string fault = Settings::now().fault;
    if (fault == "no_device") return call.driver.error(kNoDevice, "");
    if (fault == "init") return call.driver.error(kUnknown, "HEDDLE_EMULATED_FAULT=init");
    call.driver.initialised = true;
    call.driver.random = Random(Settings::now().seed);
  }
  static std::once_flag once;
  std::call_once(once, inject);
  return kSuccess;
}
HEDDLE_EXPORT Result cuDriverGetVersion(int* version) {
  *version = Settings::now().fault == "old_driver" ? 11080 : 13000;
  return kSuccess;
}
HEDDLE_EXPORT Result cuDeviceGetCount(int* count) {
  *count = Settings::now().fault == "no_device" ? 0 : 1;
  return kSuccess;
}
HEDDLE_EXPORT Result cuDeviceGet(int* device, int ordinal) {
  if (ordinal != 0) return kInvalidDevice;
  *device = 0;
  return kSuccess;
}
HEDDLE_EXPORT Result cuDeviceGetName(char* name, int bytes, int) {
  if (bytes <= 0) return kInvalidValue;
  std::strncpy(name, "Heddle emulator", static_cast<size_t>(bytes) - 1);
  name[bytes - 1] = '\0';
  return kSuccess;
}
HEDDLE_EXPORT Result cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = Settings::now().memory_bytes;
  return kSuccess;
}
HEDDLE_EXPORT Result cuDeviceGetAttribute(int* value, int attribute, int) {
  const int found = attribute_of(attribute, Settings::now());
  if (found < 0) return kInvalidValue;
  *value = found;
  return kSuccess;
}
HEDDLE_EXPORT Result cuGetErrorName(Result result, const char** name) {
  for (const Named& named : kResults) {
    if (named.result != result) continue;
    *name = named.name;
    return kSuccess;
  }
  *name = nullptr;
  return kInvalidValue;
}
// With what the emulator knows of the last error of this thread's process.
HEDDLE_EXPORT Result cuGetErrorString(Result result, const char** text) {
  const Call call;
  static thread_local std::string kept;
  for (const Named& named : kResults) {
    if (named.result != result) continue;
    kept = named.text;
    if (result != kSuccess && !call.driver.detail.empty()) kept += ": " + call.driver.detail;
    *text = kept.c_str();
    return kSuccess;
  }
  *text = nullptr;
  return kInvalidValue;
}

HEDDLE_EXPORT Result cuDevicePrimaryCtxRetain(void** context, int) {
  const Call call;
  *context = &call.driver;
  const Result result = call.ready();
  if (result == kSuccess) ++call.driver.contexts;
  return result;
}
HEDDLE_EXPORT Result cuDevicePrimaryCtxRelease_v2(int) {
  const Call call;
  if (call.driver.contexts == 0) return call.driver.error(kInvalidContext, "it was not retained");
  --call.driver.contexts;  // a lost device stays lost for the process, as on hardware
  return kSuccess;
}
HEDDLE_EXPORT Result cuCtxSetCurrent(void*) {
  return kSuccess;
}
HEDDLE_EXPORT Result cuCtxResetPersistingL2Cache() {
  return kSuccess;
}
HEDDLE_EXPORT Result cuCtxGetCurrent(void** context) {
  *context = &Driver::get();
  return kSuccess;
}
HEDDLE_EXPORT Result cuCtxSynchronize() {
  const ApiCall api(17);
  const Call call;
  Result first = kSuccess;
  for (Stream* stream : call.driver.streams) {
    if (const Result result = call.driver.wait(stream); first == kSuccess) first = result;
  }
  Work wait;
  wait.kind = Work::Kind::kSync;
  wait.sync = 4;
  call.driver.tell(wait);
  return first == kSuccess ? call.ready() : first;
}
