// Streams, events and graphs.
#include <chrono>

#include "emulator/driver/driver.h"

namespace heddle::emulator {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void tell_of_wait(Driver& driver, uint32_t kind, uint32_t stream) {
  Work wait;
  wait.kind = Work::Kind::kSync;
  wait.sync = kind;
  wait.stream = stream;
  driver.tell(wait);
}

}  // namespace
}  // namespace heddle::emulator

using namespace heddle::emulator;

HEDDLE_EXPORT Result cuStreamCreate(void** stream, unsigned flags) {
  const Call call;
  if (const Result result = call.ready(); result != kSuccess) return result;
  constexpr unsigned kNonBlocking = 1;
  auto* made = new Stream();
  made->number = ++call.driver.numbered_streams;
  made->blocking = (flags & kNonBlocking) == 0;
  call.driver.streams.insert(made);
  *stream = made;
  return kSuccess;
}
HEDDLE_EXPORT Result cuStreamCreateWithPriority(void** stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}
HEDDLE_EXPORT Result cuStreamDestroy_v2(void* stream) {
  const Call call;
  auto* s = static_cast<Stream*>(stream);
  if (!call.driver.streams.contains(s)) return call.driver.error(kInvalidHandle, "there is no such stream");
  call.driver.drain(s);
  call.driver.streams.erase(s);
  delete s;
  return kSuccess;
}
HEDDLE_EXPORT Result cuStreamSynchronize(void* stream) {
  const ApiCall api(126);
  const Call call;
  auto* s = static_cast<Stream*>(stream);
  if (s != nullptr && !call.driver.streams.contains(s)) return call.driver.error(kInvalidHandle, "no such stream");
  if (s != nullptr && s->capture != nullptr) return call.driver.error(kCaptureUnsupported, "synchronisation");
  if (const Result result = call.driver.wait(s); result != kSuccess) return result;
  constexpr uint32_t kOfStream = 3;
  tell_of_wait(call.driver, kOfStream, s == nullptr ? 0 : s->number);
  return call.ready();
}
HEDDLE_EXPORT Result cuStreamQuery(void* stream) {
  return cuStreamSynchronize(stream);
}
HEDDLE_EXPORT Result cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const Call call;
  auto* s = static_cast<Stream*>(stream);
  auto* e = static_cast<Event*>(event);
  if (const Result result = call.ready(); result != kSuccess) return result;
  if (s != nullptr && e->capture != nullptr) {  // an event of a capture draws the stream into it
    if (s->capture == nullptr) s->capture = e->capture;
    return kSuccess;
  }
  Driver& driver = call.driver;
  return driver.submit(stream, [&driver, state = e->state] {
    if (!state->done) driver.drain(state->stream);
    return kSuccess;
  });
}

HEDDLE_EXPORT Result cuStreamBeginCapture_v2(void* stream, int) {
  const Call call;
  auto* s = static_cast<Stream*>(stream);
  if (s == nullptr) return call.driver.error(kCaptureUnsupported, "the default stream");
  if (s->capture != nullptr) return call.driver.error(kCaptureInvalidated, "the stream captures already");
  s->capture = std::make_shared<Graph>();
  s->capture->id = ++call.driver.graphs;
  return kSuccess;
}
HEDDLE_EXPORT Result cuStreamEndCapture(void* stream, void** graph) {
  const Call call;
  auto* s = static_cast<Stream*>(stream);
  *graph = nullptr;
  if (s == nullptr || s->capture == nullptr) return call.driver.error(kInvalidValue, "the stream does not capture");
  const std::shared_ptr<Graph> captured = s->capture;
  for (Stream* other : call.driver.streams) {
    if (other->capture == captured) other->capture = nullptr;
  }
  *graph = new Graph(*captured);
  return kSuccess;
}
HEDDLE_EXPORT Result cuStreamIsCapturing(void* stream, int* status) {
  const Call call;
  auto* s = static_cast<Stream*>(stream);
  *status = s != nullptr && s->capture != nullptr;
  return kSuccess;
}
HEDDLE_EXPORT Result cuStreamGetCaptureInfo_v2(void* stream, int* status, uint64_t* id, void** graph, void***,
                                               size_t*) {
  const Call call;
  auto* s = static_cast<Stream*>(stream);
  *status = s != nullptr && s->capture != nullptr;
  if (*status != 0 && id != nullptr) *id = s->capture->id;
  if (*status != 0 && graph != nullptr) *graph = s->capture.get();
  return kSuccess;
}
// The handle is a reference; a graph holds others.
HEDDLE_EXPORT Result cuUserObjectCreate(void** object, void* pointer, void (*destroy)(void*), unsigned count,
                                        unsigned) {
  const Call call;
  if (destroy == nullptr || count != 1) return call.driver.error(kInvalidValue, "user objects of one reference");
  *object = new std::shared_ptr<UserObject>(std::make_shared<UserObject>(pointer, destroy));
  return kSuccess;
}
HEDDLE_EXPORT Result cuUserObjectRelease(void* object, unsigned) {
  delete static_cast<std::shared_ptr<UserObject>*>(object);
  return kSuccess;
}
HEDDLE_EXPORT Result cuGraphRetainUserObject(void* graph, void* object, unsigned, unsigned flags) {
  constexpr unsigned kMove = 1;
  const Call call;
  auto* reference = static_cast<std::shared_ptr<UserObject>*>(object);
  static_cast<Graph*>(graph)->retained.push_back(*reference);
  if ((flags & kMove) != 0) delete reference;
  return kSuccess;
}
HEDDLE_EXPORT Result cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  const Call call;
  if (graph == nullptr) return call.driver.error(kInvalidValue, "no graph");
  const Graph& original = *static_cast<Graph*>(graph);
  auto* made = new Graph(original);
  made->id = ++call.driver.graphs;
  for (size_t i = 0; i < made->operations.size(); ++i) made->operations[i].work.graph_node = made->node(i);
  if (const Observer* who = observer()) who->executable_created(original, *made);
  *executable = made;
  return kSuccess;
}
HEDDLE_EXPORT Result cuGraphLaunch(void* executable, void* stream) {
  const ApiCall api(514);
  const Call call;
  if (const Result result = call.ready(); result != kSuccess) return result;
  if (executable == nullptr) return call.driver.error(kInvalidHandle, "no graph");
  for (const Operation& operation : static_cast<Graph*>(executable)->operations) {
    if (const Result result = call.driver.submit(stream, operation); result != kSuccess) return result;
  }
  return kSuccess;
}
HEDDLE_EXPORT Result cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return kSuccess;
}
HEDDLE_EXPORT Result cuGraphExecDestroy(void* executable) {
  delete static_cast<Graph*>(executable);
  return kSuccess;
}
HEDDLE_EXPORT Result cuGraphUpload(void*, void*) {
  return kSuccess;
}

HEDDLE_EXPORT Result cuEventCreate(void** event, unsigned) {
  *event = new Event();
  return kSuccess;
}
HEDDLE_EXPORT Result cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return kSuccess;
}
HEDDLE_EXPORT Result cuEventRecord(void* event, void* stream) {
  const Call call;
  if (const Result result = call.ready(); result != kSuccess) return result;
  auto* e = static_cast<Event*>(event);
  auto* s = static_cast<Stream*>(stream);
  e->capture = s == nullptr ? nullptr : s->capture;
  if (e->capture != nullptr) return kSuccess;
  // A wait for the record before this one keeps that one's state.
  e->state = std::make_shared<Event::State>();
  e->state->stream = s;
  return call.driver.submit(stream, [state = e->state] {
    state->done = true;
    state->seconds = now();
    return kSuccess;
  });
}
// With the flag, a record on a stream that captures is an operation of the graph.
HEDDLE_EXPORT Result cuEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  constexpr unsigned kExternal = 1;
  auto* s = static_cast<Stream*>(stream);
  if ((flags & kExternal) == 0 || s == nullptr || s->capture == nullptr) return cuEventRecord(event, stream);
  const Call call;
  if (const Result result = call.ready(); result != kSuccess) return result;
  auto* e = static_cast<Event*>(event);
  e->capture = nullptr;
  e->state = std::make_shared<Event::State>();
  return call.driver.submit(stream, [state = e->state] {
    state->done = true;
    state->seconds = now();
    return kSuccess;
  });
}
HEDDLE_EXPORT Result cuEventSynchronize(void* event) {
  const ApiCall api(121);
  const Call call;
  const auto state = static_cast<Event*>(event)->state;
  if (!state->done) {
    if (const Result result = call.driver.wait(state->stream); result != kSuccess) return result;
  }
  constexpr uint32_t kOfEvent = 1;
  tell_of_wait(call.driver, kOfEvent, 0);
  return call.ready();
}
HEDDLE_EXPORT Result cuEventQuery(void* event) {
  return cuEventSynchronize(event);
}
HEDDLE_EXPORT Result cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  const Call call;
  const auto from = static_cast<Event*>(start)->state, to = static_cast<Event*>(end)->state;
  const bool recorded = (from->done || from->stream != nullptr) && (to->done || to->stream != nullptr);
  if (!recorded) return call.driver.error(kInvalidHandle, "an event was not recorded");
  if (!from->done || !to->done) return kNotReady;
  *milliseconds = static_cast<float>((to->seconds - from->seconds) * 1e3);
  return kSuccess;
}
