// Streams, events and graphs. What a stream is given runs at once, so streams and events need no queues.
#include <chrono>

#include "emulator/driver.h"

namespace heddle::emulator {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace
}  // namespace heddle::emulator

using namespace heddle::emulator;

HEDDLE_EXPORT Result cuStreamCreate(void** stream, unsigned) {
  const Call call;
  if (const Result result = call.ready(); result != kSuccess) return result;
  auto* made = new Stream();
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
  if (call.driver.streams.erase(s) == 0) return call.driver.error(kInvalidHandle, "there is no such stream");
  delete s;
  return kSuccess;
}
HEDDLE_EXPORT Result cuStreamSynchronize(void* stream) {
  const Call call;
  auto* s = static_cast<Stream*>(stream);
  if (s != nullptr && !call.driver.streams.contains(s)) return call.driver.error(kInvalidHandle, "no such stream");
  if (s != nullptr && s->capture != nullptr) return call.driver.error(kCaptureUnsupported, "synchronisation");
  return call.ready();
}
HEDDLE_EXPORT Result cuStreamQuery(void* stream) {
  return cuStreamSynchronize(stream);
}
HEDDLE_EXPORT Result cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const Call call;
  auto* s = static_cast<Stream*>(stream);
  auto* e = static_cast<Event*>(event);
  // An event of a capture draws the stream into it.
  if (s != nullptr && s->capture == nullptr) s->capture = e->capture;
  return call.ready();
}

HEDDLE_EXPORT Result cuStreamBeginCapture_v2(void* stream, int) {
  const Call call;
  auto* s = static_cast<Stream*>(stream);
  if (s == nullptr) return call.driver.error(kCaptureUnsupported, "the default stream");
  if (s->capture != nullptr) return call.driver.error(kCaptureInvalidated, "the stream captures already");
  s->capture = std::make_shared<Graph>();
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
HEDDLE_EXPORT Result cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  const Call call;
  if (graph == nullptr) return call.driver.error(kInvalidValue, "no graph");
  *executable = new Graph(*static_cast<Graph*>(graph));
  return kSuccess;
}
HEDDLE_EXPORT Result cuGraphLaunch(void* executable, void* stream) {
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
  auto* e = static_cast<Event*>(event);
  auto* s = static_cast<Stream*>(stream);
  e->capture = s == nullptr ? nullptr : s->capture;
  e->seconds = now();
  return call.ready();
}
HEDDLE_EXPORT Result cuEventSynchronize(void*) {
  return Call().ready();
}
HEDDLE_EXPORT Result cuEventQuery(void*) {
  return Call().ready();
}
HEDDLE_EXPORT Result cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  const Call call;
  const double from = static_cast<Event*>(start)->seconds, to = static_cast<Event*>(end)->seconds;
  if (from < 0 || to < 0) return call.driver.error(kInvalidHandle, "an event was not recorded");
  *milliseconds = static_cast<float>((to - from) * 1e3);
  return kSuccess;
}
