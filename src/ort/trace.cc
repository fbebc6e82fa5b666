#include "ort/trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"

namespace heddle::ort {
namespace {

constexpr size_t kMostEvents = 1'000'000;  // ONNX Runtime keeps no more either

int64_t microseconds(Trace::Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

Trace::Clock::duration of_seconds(double seconds) {
  return std::chrono::duration_cast<Trace::Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

class Trace::Profile : public OrtEpProfilerImpl {
 public:
  explicit Profile(std::shared_ptr<Trace> trace) : trace_(std::move(trace)) {
    OrtEpProfilerImpl::release = [](OrtEpProfilerImpl* self) { delete static_cast<Profile*>(self); };
    OrtEpProfilerImpl::start_profiling = [](OrtEpProfilerImpl* self, int64_t since_start_ns) {
      return of(self).trace_->runtime_.guarded([&] { of(self).start(since_start_ns); });
    };
    OrtEpProfilerImpl::start_event = [](OrtEpProfilerImpl*, uint64_t) { return static_cast<OrtStatus*>(nullptr); };
    OrtEpProfilerImpl::stop_event = [](OrtEpProfilerImpl*, uint64_t, const OrtProfilingEvent*) {
      return static_cast<OrtStatus*>(nullptr);
    };
    OrtEpProfilerImpl::end_profiling = [](OrtEpProfilerImpl* self, OrtProfilingEventsContainer* events) {
      return of(self).trace_->runtime_.guarded([&] { of(self).finish(events); });
    };
  }
  ~Profile() { trace_->end(*this); }
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  void add(const Event& event) {
    if (events_.size() < kMostEvents) events_.push_back(event);
  }

 private:
  static Profile& of(OrtEpProfilerImpl* self) { return *static_cast<Profile*>(self); }

  // The profile began `since_start_ns` ago.
  void start(int64_t since_start_ns) {
    if (trace_->gpu_ != nullptr) {
      const runtime::CudaContext& gpu = *trace_->gpu_;
      on_gpu_ = std::make_shared<runtime::CudaStopwatch>(gpu);
      on_gpu_->start(gpu.stream());
      gpu.synchronize();
    }
    began_ = Clock::now();
    offset_ = std::chrono::nanoseconds(since_start_ns);
    trace_->begin(*this);
  }

  // ONNX Runtime's container grows by exactly what a call adds, so all events are added by one.
  void finish(OrtProfilingEventsContainer* container) {
    trace_->end(*this);
    const Runtime& runtime = trace_->runtime_;
    std::vector<OrtProfilingEvent*> made;
    made.reserve(events_.size());
    const std::shared_ptr<void> owner(nullptr, [&](void*) {
      for (OrtProfilingEvent* const event : made) runtime.ep_api()(ep_api::kReleaseProfilingEvent, event);
    });
    for (Event& event : events_) made.push_back(make(event));
    if (!made.empty()) {
      runtime.check(runtime.ep_api()(ep_api::kAddProfilingEvents, container, made.data(), made.size()));
    }
    events_.clear();
  }

  OrtProfilingEvent* make(Event& event) const {
    if (event.stopwatch != nullptr) {
      event.duration = of_seconds(event.stopwatch->seconds());
      event.start = began_ + of_seconds(event.stopwatch->seconds_after(*on_gpu_));
      event.stopwatch.reset();
    }
    const char* const keys[] = {"region", "nodes"};
    const char* const values[] = {event.region.c_str(), event.nodes.c_str()};
    const size_t count = event.nodes.empty() ? 1 : 2;
    const Runtime& runtime = trace_->runtime_;
    OrtProfilingEvent* made = nullptr;
    runtime.check(runtime.ep_api()(ep_api::kCreateProfilingEvent, EventCategory::kKernel,
                                   static_cast<int32_t>(::getpid()), event.thread, event.name.c_str(),
                                   microseconds(event.start - began_ + offset_), microseconds(event.duration), keys,
                                   values, count, &made));
    return made;
  }

  const std::shared_ptr<Trace> trace_;
  Clock::time_point began_;
  Clock::duration offset_{};
  Stopwatch on_gpu_;  // started when the host's clock was `began_`
  std::vector<Event> events_;
};

void Trace::add(const Event& event) {
  const std::lock_guard lock(mutex_);
  for (Profile* const profile : profiles_) profile->add(event);
}

void Trace::add_step(const std::string& region, const runtime::Step& step, Clock::time_point start,
                     Clock::time_point end) {
  add({step.label, region, step.origin, start, end - start, static_cast<int32_t>(::syscall(SYS_gettid)), nullptr});
}

Trace::Stopwatch Trace::add_run(const std::string& region) {
  Event event{.name = region, .region = region};
  event.stopwatch = std::make_shared<runtime::CudaStopwatch>(*gpu_);
  add(event);
  return event.stopwatch;
}

void Trace::begin(Profile& profile) {
  const std::lock_guard lock(mutex_);
  profiles_.push_back(&profile);
  is_on_ = true;
}

void Trace::end(Profile& profile) {
  const std::lock_guard lock(mutex_);
  std::erase(profiles_, &profile);
  is_on_ = !profiles_.empty();
}

OrtEpProfilerImpl* Trace::create_profile() {
  return new Profile(shared_from_this());
}

}  // namespace heddle::ort
