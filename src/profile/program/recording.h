#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "profile/gpu/collector.h"
#include "profile/gpu/operation_tree.h"
#include "profile/profile.h"
#include "profile/program/contexts.h"
#include "profile/program/sampler.h"

namespace heddle::profile {

// Records what this process does, by Python line: CPU time by sampling, and GPU activity through CUPTI if it is
// available. One at a time.
class ProgramRecording {
 public:
  struct Options {
    std::string title = "a program";
    double rate = 100;        // samples a second of CPU time
    bool gpu = true;          // collect what GPUs do
    bool all_frames = false;  // show frames that only pass calls on
    std::string file = {};    // where to keep the profile while it grows, as JSON; "": nowhere
  };
  explicit ProgramRecording(Options options);
  ~ProgramRecording();
  ProgramRecording(const ProgramRecording&) = delete;
  ProgramRecording& operator=(const ProgramRecording&) = delete;

  // Starts to collect GPU activity, unless it has already. If that fails, a fact of the profile says why.
  void start_gpu();
  // Objects of torch.nn.Module whose calls were seen, and a call that sets their names. Use them before finish().
  std::vector<uint64_t> modules() const { return contexts_.modules(); }
  void name_modules(std::map<uint64_t, std::string> names);
  // Adds a fact to the profile.
  void say(std::string name, std::string value);
  // Ends the recording and returns the complete profile.
  Profile finish();
  void forget_in_child();  // after fork(), in place of finish()

 private:
  void collect_forever();
  void collect();
  void add(const CpuSample& sample);
  void end_collecting();
  Profile profile() const;  // as far as it is known
  void add_facts(Profile& to) const;

  const Options options_;
  const std::string folder_;  // the program's working directory when it began
  std::string why_no_python_;
  PythonRuntime python_;
  std::string why_no_gpu_ = "it was left alone";
  ProgramContexts contexts_;
  std::optional<CpuSampler> sampler_;
  std::shared_ptr<GpuCollector> gpu_;
  Profile profile_;
  OperationTree operations_;
  std::map<uint64_t, std::string> module_names_;
  std::vector<std::pair<std::string, std::string>> said_;
  size_t cpu_ = 0;  // the metric
  uint64_t samples_ = 0;
  double cpu_before_ = 0, wall_before_ = 0;  // CPU time of the process and wall time when it began, in s

  mutable std::mutex mutex_;  // guards all above but contexts_
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread collector_;
};

}  // namespace heddle::profile
