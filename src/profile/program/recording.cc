#include "profile/program/recording.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/thread/thread.h"
#include "heddle/error.h"
#include "profile/advice.h"
#include "profile/json.h"
#include "profile/program/device_wait.h"
#include "profile/program/sources.h"

namespace heddle::profile {
namespace {

// A function of a library, for code that is not the interpreter's: there the Python frame says more.
std::optional<Frame> native_frame(uint64_t program_counter) {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(program_counter), &info) == 0 || info.dli_fname == nullptr) {
    return Frame{"native", "(generated code)"};
  }
  const std::string library = std::filesystem::path(info.dli_fname).filename();
  if (library.starts_with("libpython") || library.starts_with("python")) return std::nullopt;
  if (info.dli_sname == nullptr) return Frame{"native", library};
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status),
                                                    std::free);
  return Frame{"native", fmt::format("{} ({})", status == 0 && text != nullptr ? text.get() : info.dli_sname, library)};
}

std::string rank_of_process() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* value = std::getenv(name)) return value;
  }
  return "";
}

std::string folder_of_process() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

std::string process_name() {
  const std::string rank = rank_of_process();
  return rank.empty() ? fmt::format("process {}", ::getpid()) : "rank " + rank;
}

// Threads started meanwhile inherit a mask of all signals: the program's signals are for its own threads.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

ProgramRecording::ProgramRecording(Options options)
    : options_(std::move(options)),
      folder_(folder_of_process()),
      python_(find_python(&why_no_python_)),
      contexts_(python_),
      profile_{options_.title, {}},
      operations_(profile_,
                  [this](uint64_t context) { return contexts_.node_of(context, profile_.tree, options_.all_frames); }) {
  if (options_.gpu) why_no_gpu_ = "CUDA was not used";
  cpu_ = profile_.tree.add_metric(metrics::kCpu);
  cpu_before_ = process_seconds(), wall_before_ = wall_seconds();
  sampler_.emplace(python_, options_.rate);
  const NoSignals for_the_collector;
  collector_ = start_thread("profiler", [this] { collect_forever(); });
}

ProgramRecording::~ProgramRecording() {
  end_collecting();
}

void ProgramRecording::start_gpu() {
  {
    const std::lock_guard lock(mutex_);
    if (!options_.gpu || gpu_ != nullptr) return;
  }
  std::shared_ptr<GpuCollector> started;
  std::string why;
  try {
    started = GpuCollector::start({.context = [this] { return contexts_.here(); }});
  } catch (const Error& error) {
    why = error.what();
  }
  const std::lock_guard lock(mutex_);
  gpu_ = std::move(started);
  why_no_gpu_ = why;
}

void ProgramRecording::name_modules(std::map<uint64_t, std::string> names) {
  const std::lock_guard lock(mutex_);
  module_names_.merge(names);
}

void ProgramRecording::say(std::string name, std::string value) {
  const std::lock_guard lock(mutex_);
  said_.emplace_back(std::move(name), std::move(value));
}

void ProgramRecording::collect_forever() {
  ::pthread_setname_np(::pthread_self(), "heddle-profile");
  constexpr auto kEvery = std::chrono::milliseconds(50);
  // Of a program that is killed all but its last seconds are known, and writing takes a small part of the time.
  constexpr double kShortestPause = 0.5, kPauseOfWrite = 100;
  double next_write = wall_before_ + kShortestPause;
  std::unique_lock lock(mutex_);
  while (!ending_) {
    wake_.wait_for(lock, kEvery, [this] { return ending_; });
    collect();
    const double now = wall_seconds();
    if (options_.file.empty() || now < next_write) continue;
    const std::string json = to_json(profile());
    lock.unlock();
    try {
      write_file(options_.file, json, Sync::kNo);
    } catch (const Error&) {
      // The last write says why.
    }
    const double written = wall_seconds();
    next_write = written + std::max(kShortestPause, kPauseOfWrite * (written - now));
    lock.lock();
  }
}

void ProgramRecording::collect() {
  sampler_->collect([this](const PythonFrame& frame, const PythonCode& code) { contexts_.learn(frame, code); },
                    [this](const CpuSample& sample) { add(sample); });
  if (gpu_ == nullptr) return;
  operations_.add(gpu_->take());
}

void ProgramRecording::add(const CpuSample& sample) {
  ++samples_;
  CallingContextTree& tree = profile_.tree;
  NodeId node = contexts_.node_of(contexts_.number_of(sample.frames), tree, options_.all_frames);
  if (sample.frames.empty()) node = tree.child(0, Frame{"thread", *sample.thread});
  if (const std::optional<Frame> native = native_frame(sample.program_counter)) node = tree.child(node, *native);
  tree.add(node, cpu_, sample.nanoseconds);
}

void ProgramRecording::end_collecting() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (collector_.joinable()) collector_.join();
  sampler_->stop();
}

Profile ProgramRecording::finish() {
  end_collecting();
  if (gpu_ != nullptr) {
    wait_for_devices();
    gpu_->stop();
  }
  const std::lock_guard lock(mutex_);
  collect();
  return profile();
}

void ProgramRecording::forget_in_child() {
  sampler_->forget_in_child();
  collector_.detach();
  static_cast<void>(new std::shared_ptr<GpuCollector>(std::move(gpu_)));  // CUPTI is the parent's: it is not told
}

Profile ProgramRecording::profile() const {
  Profile result = relabelled(profile_, [this](const Frame& frame) -> std::optional<Frame> {
    const uint64_t module = module_address(frame);
    if (module == 0) return frame;
    const auto name = module_names_.find(module);
    if (name == module_names_.end() || name->second.empty()) return std::nullopt;
    return Frame{"module", name->second};
  });
  // What no sample saw: threads that lived shorter than it takes to find them, and the profiler's own.
  const auto cpu = static_cast<int64_t>(std::llround((process_seconds() - cpu_before_) * 1e9));
  result.tree.add(0, cpu_, std::max<int64_t>(cpu - result.tree.total(cpu_), 0));
  for (Timeline::Track& track : result.timeline.tracks) track.process = process_name() + ", " + track.process;
  result = with_sources(result, folder_);
  add_facts(result);
  result.advice = advice_for(result);
  return result;
}

void ProgramRecording::add_facts(Profile& to) const {
  const auto say = [&](std::string name, std::string value) {
    to.facts.emplace_back(std::move(name), std::move(value));
  };
  say("process", process_name());
  say("time", fmt::format("{:.2f} s, {:.2f} s of CPU", wall_seconds() - wall_before_, process_seconds() - cpu_before_));
  say("CPU samples",
      fmt::format("{} of {} threads, {:g} a second of CPU time{}", samples_, sampler_->threads(), options_.rate,
                  sampler_->lost() == 0 ? "" : fmt::format(", {} lost", sampler_->lost())));
  if (!why_no_python_.empty()) say("Python", why_no_python_);
  for (const auto& [name, value] : said_) say(name, value);
  if (gpu_ == nullptr) {
    say("GPU", "no operations: " + why_no_gpu_);
    return;
  }
  for (auto& fact : facts_of(gpu_->stats())) to.facts.push_back(std::move(fact));
}

}  // namespace heddle::profile
