#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ort/runtime.h"
#include "runtime/cuda/launch.h"
#include "runtime/plan.h"

namespace heddle::ort {

// Times of a session's regions, for ONNX Runtime's profiles: of each step on a CPU, and of each run of a region on a
// GPU.
class Trace : public std::enable_shared_from_this<Trace> {
 public:
  using Clock = std::chrono::steady_clock;
  using Stopwatch = std::shared_ptr<runtime::CudaStopwatch>;

  // `gpu`: of the session; null: the CPU.
  Trace(const Runtime& runtime, std::shared_ptr<const runtime::CudaContext> gpu)
      : runtime_(runtime), gpu_(std::move(gpu)) {}

  // True while ONNX Runtime writes a profile.
  bool is_on() const { return is_on_; }
  // A step of `region` that ran on the calling thread from `start` to `end`. `nodes`: the model's, as text.
  void add_step(const std::string& region, const runtime::Step& step, Clock::time_point start, Clock::time_point end);
  // Returns a stopwatch for a run of `region`, to be started and stopped on the run's stream.
  Stopwatch add_run(const std::string& region);

  // ONNX Runtime releases it, maybe after the session's provider.
  OrtEpProfilerImpl* create_profile();

 private:
  class Profile;
  struct Event {
    std::string name, region, nodes = {};
    Clock::time_point start = {};
    Clock::duration duration{};
    int32_t thread = -1;       // -1: the GPU
    Stopwatch stopwatch = {};  // of an event on a GPU, instead of `start` and `duration`
  };

  void add(const Event& event);
  void begin(Profile& profile);
  void end(Profile& profile);

  const Runtime runtime_;
  const std::shared_ptr<const runtime::CudaContext> gpu_;
  std::atomic<bool> is_on_{false};
  std::mutex mutex_;
  std::vector<Profile*> profiles_;  // that are being written
};

}  // namespace heddle::ort
