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

// Records the activity of this process by line of Python code: CPU time by sampling, and GPU activity through CUPTI if
// that is available. A process can have only one recording at a time.
class ProgramRecording {
 public:
  struct Options {
    std::string title = "a program";
    double rate = 100;        // samples per second of CPU time
    bool gpu = true;          // collect GPU activity
    bool all_frames = false;  // show frames that only forward calls
    std::string file = {};    // JSON file to which the profile so far is written repeatedly; "": no file
  };
  explicit ProgramRecording(Options options);
  ~ProgramRecording();
  ProgramRecording(const ProgramRecording&) = delete;
  ProgramRecording& operator=(const ProgramRecording&) = delete;

  // Starts to collect GPU activity, unless that has started already. If it cannot start, a fact in the profile gives
  // the reason.
  void start_gpu();
  // modules() returns the addresses of the torch.nn.Module objects whose calls were recorded. name_modules() sets the
  // names of modules, by address. Both functions must be called before finish().
  std::vector<uint64_t> modules() const { return contexts_.modules(); }
  void name_modules(std::map<uint64_t, std::string> names);
  // Adds a fact to the profile.
  void say(std::string name, std::string value);
  // Ends the recording and returns the complete profile.
  Profile finish();
  void forget_in_child();  // to be called in the child after fork(), instead of finish()

 private:
  void collect_forever();
  void collect();
  void add(const CpuSample& sample);
  void end_collecting();
  Profile profile() const;  // the profile as recorded so far
  void add_facts(Profile& to) const;

  const Options options_;
  const std::string folder_;  // the working directory when the recording began
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
  size_t cpu_ = 0;  // the index of the CPU time metric
  uint64_t samples_ = 0;
  double cpu_before_ = 0, wall_before_ = 0;  // CPU time of the process and wall time at the start, in seconds

  mutable std::mutex mutex_;  // guards all members above except contexts_
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread collector_;
};

}  // namespace heddle::profile
