#include "emulator/cupti/cupti.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "emulator/cupti/recorder.h"
#include "emulator/driver/driver.h"

namespace heddle::emulator {
namespace {

constexpr int kDriverDomain = 1, kResourceDomain = 3;
constexpr uint32_t kVersion = 130001, kOldVersion = 26;

const void* handle_of(uint64_t node) {
  return reinterpret_cast<const void*>(node);
}

void call(uint32_t id, int site, uint32_t correlation) {
  CallData data{};
  data.site = site;
  data.function = "";
  data.correlation = correlation;
  Recorder::get().call_back(kDriverDomain, id, &data);
}

void resource(uint32_t id, const GraphData& graph) {
  const ResourceData data{nullptr, nullptr, &graph};
  Recorder::get().call_back(kResourceDomain, id, &data);
}

uint32_t enter(uint32_t id) {
  static std::atomic<uint32_t> correlations{0};
  const uint32_t correlation = ++correlations;
  call(id, 0, correlation);
  return correlation;
}

const Observer kObserver = {
    .enter = enter,
    .exit = [](uint32_t id, uint32_t correlation) { call(id, 1, correlation); },
    .node_created =
        [](const Graph& graph, uint64_t node) {
          constexpr uint32_t kNodeCreated = 13;
          resource(kNodeCreated, {&graph, nullptr, handle_of(node), nullptr, 0, nullptr, nullptr});
        },
    .executable_created =
        [](const Graph& graph, const Graph& executable) {
          constexpr uint32_t kExecutableCreated = 18;
          resource(kExecutableCreated, {&graph, nullptr, nullptr, nullptr, 0, nullptr, &executable});
        },
    .done = [](const Work& work) { Recorder::get().done(work); },
};

// False where the process does not use the emulator.
bool observe(const Observer* observer) {
  const char* path = std::getenv("HEDDLE_CUDA_DRIVER");
  void* const driver = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  using Observe = void (*)(const Observer*);
  const auto function = reinterpret_cast<Observe>(::dlsym(driver, "heddle_cuda_emulator_observe"));
  if (function != nullptr) function(observer);
  ::dlclose(driver);  // it stays loaded by its user
  return function != nullptr;
}

CuptiResult subscribe(void** subscriber, Callback callback, void* user) {
  if (subscriber == nullptr || callback == nullptr) return kCuptiInvalidParameter;
  const Faults faults = Faults::now();
  if (faults.held || !Recorder::get().subscribe(callback, user, faults)) return kCuptiHeld;
  if (!observe(&kObserver)) {
    Recorder::get().unsubscribe();
    return kCuptiUnknown;
  }
  *subscriber = &Recorder::get();
  return kCuptiSuccess;
}

}  // namespace
}  // namespace heddle::emulator

using namespace heddle::emulator;

HEDDLE_EXPORT CuptiResult cuptiGetVersion(uint32_t* version) {
  *version = Faults::now().old ? kOldVersion : kVersion;
  return kCuptiSuccess;
}
HEDDLE_EXPORT CuptiResult cuptiGetResultString(CuptiResult result, const char** text) {
  *text = result == kCuptiHeld           ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
          : result == kCuptiNoPrivileges ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
          : result == kCuptiSuccess      ? "CUPTI_SUCCESS"
                                         : "CUPTI_ERROR_UNKNOWN";
  return kCuptiSuccess;
}
HEDDLE_EXPORT CuptiResult cuptiSubscribe(void** subscriber, Callback callback, void* user) {
  return subscribe(subscriber, callback, user);
}
HEDDLE_EXPORT CuptiResult cuptiSubscribe_v2(void** subscriber, Callback callback, void* user,
                                            SubscriberParams* params) {
  const CuptiResult result = subscribe(subscriber, callback, user);
  const bool named = params != nullptr && params->holder != nullptr && params->holder_bytes > 0;
  if (result == kCuptiHeld && named) {
    std::strncpy(params->holder, "CUPTI for Another", params->holder_bytes);
    params->holder[params->holder_bytes - 1] = '\0';
  }
  return result;
}
HEDDLE_EXPORT CuptiResult cuptiUnsubscribe(void* subscriber) {
  if (subscriber != &Recorder::get()) return kCuptiInvalidParameter;
  observe(nullptr);
  Recorder::get().unsubscribe();
  return kCuptiSuccess;
}
HEDDLE_EXPORT CuptiResult cuptiEnableCallback(uint32_t enable, void* subscriber, int domain, uint32_t id) {
  if (subscriber != &Recorder::get()) return kCuptiInvalidParameter;
  Recorder::get().enable_callback(enable != 0, domain, id);
  return kCuptiSuccess;
}
HEDDLE_EXPORT CuptiResult cuptiActivityRegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
  Recorder::get().set_buffers(requested, completed);
  return kCuptiSuccess;
}
HEDDLE_EXPORT CuptiResult cuptiActivityEnable(uint32_t kind) {
  if (Recorder::get().faults().denied) return kCuptiNoPrivileges;
  Recorder::get().enable_activity(true, kind);
  return kCuptiSuccess;
}
HEDDLE_EXPORT CuptiResult cuptiActivityDisable(uint32_t kind) {
  Recorder::get().enable_activity(false, kind);
  return kCuptiSuccess;
}
HEDDLE_EXPORT CuptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, const uint8_t** record) {
  const bool old = Recorder::get().faults().old;
  size_t at = 0;
  if (*record != nullptr) {
    const size_t bytes = record_bytes(*record, old);
    if (bytes == 0) return kCuptiInvalidKind;
    at = static_cast<size_t>(*record - buffer) + bytes;
  }
  if (at + sizeof(uint32_t) > valid) return kCuptiMaxLimitReached;
  *record = buffer + at;
  return kCuptiSuccess;
}
HEDDLE_EXPORT CuptiResult cuptiActivityFlushAll(uint32_t forced) {
  Recorder::get().flush(forced != 0);
  return kCuptiSuccess;
}
HEDDLE_EXPORT CuptiResult cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  *dropped = Recorder::get().take_dropped();
  return kCuptiSuccess;
}
HEDDLE_EXPORT CuptiResult cuptiGetGraphNodeId(const void* node, uint64_t* id) {
  if (node == nullptr || Recorder::get().faults().nameless) return kCuptiInvalidParameter;
  *id = reinterpret_cast<uint64_t>(node);
  return kCuptiSuccess;
}
HEDDLE_EXPORT CuptiResult cuptiGetGraphId(const void* graph, uint32_t* id) {
  if (graph == nullptr) return kCuptiInvalidParameter;
  *id = static_cast<const Graph*>(graph)->id;
  return kCuptiSuccess;
}
HEDDLE_EXPORT CuptiResult cuptiGetGraphExecId(const void* executable, uint32_t* id) {
  return cuptiGetGraphId(executable, id);
}
