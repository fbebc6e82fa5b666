#include "profile/program/sampler.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>

#include "base/check.h"
#include "profile/thread_timer.h"

namespace heddle::profile {

namespace {

PythonRuntime sampled_python;

void on_timer(int, siginfo_t* info, void* context) {
  auto* ring = static_cast<ThreadRing*>(info->si_value.sival_ptr);
  const int error = errno;
  // A signal may be late: its ring is no thread's by then, or another one's.
  if (info->si_code == SI_TIMER && ring != nullptr && ring->thread == static_cast<int>(::syscall(SYS_gettid))) {
    ring->take(sampled_python, program_counter_of(context));
  }
  errno = error;
}

// The signal that has the handler above, or a free one that gets it. The handler stays when sampling ends: a signal may
// be under way, whose default is to end the process.
int signal_of_samples() {
  for (int number = SIGRTMAX - 1; number > SIGRTMIN; --number) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0) continue;
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_timer) return number;
  }
  const int unused = free_real_time_signal();
  struct sigaction action {};
  action.sa_sigaction = on_timer;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  if (unused == 0 || ::sigaction(unused, &action, nullptr) != 0) {
    fail(ErrorCode::kDevice, "CPU samples", "the program uses every signal of real time");
  }
  return unused;
}

// Rings of threads that have ended, for others: they are kept by the process.
std::vector<ThreadRing*>& unused_rings() {
  static auto* rings = new std::vector<ThreadRing*>;
  return *rings;
}

// The clock of another thread's CPU time, as the kernel numbers them (include/linux/posix-timers.h).
clockid_t cpu_clock_of(int thread) {
  return static_cast<clockid_t>(~static_cast<unsigned>(thread) << 3 | 6);
}

std::string name_of(int thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

bool start_timer(ThreadRing& ring, int thread, double rate, int number) {
  timespec now{};
  if (::clock_gettime(cpu_clock_of(thread), &now) != 0) return false;
  ring.begin(thread, name_of(thread), static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec);
  sigval value{};
  value.sival_ptr = &ring;
  return start_thread_timer(thread, cpu_clock_of(thread), number, value, static_cast<int64_t>(1e9 / rate), &ring.timer);
}

}  // namespace

CpuSampler::CpuSampler(const PythonRuntime& python, double rate) : rate_(rate), signal_(signal_of_samples()) {
  HEDDLE_CHECK(rate > 0, "{} samples a second", rate);
  sampled_python = python;
  add_threads();
}

CpuSampler::~CpuSampler() {
  stop();
  for (auto& [thread, ring] : rings_) unused_rings().push_back(ring);
}

void CpuSampler::add_threads() {
  const int self = static_cast<int>(::syscall(SYS_gettid));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const int thread = std::atoi(entry.path().filename().c_str());
    if (thread == self && seen_ > 0) continue;  // who collects is no part of the program
    if (rings_.count(thread) != 0) continue;
    if (unused_rings().empty()) unused_rings().push_back(ThreadRing::make());
    ThreadRing* ring = unused_rings().back();
    if (!start_timer(*ring, thread, rate_, signal_)) continue;  // it has ended
    unused_rings().pop_back();
    rings_.emplace(thread, ring);
    ++seen_;
  }
}

void CpuSampler::remove_threads() {
  for (auto at = rings_.begin(); at != rings_.end();) {
    if (::syscall(SYS_tgkill, ::getpid(), at->first, 0) == 0) {
      ++at;
      continue;
    }
    ::timer_delete(at->second->timer);
    lost_ += at->second->lost.exchange(0);
    ended_.push_back(at->second);
    at = rings_.erase(at);
  }
}

void CpuSampler::collect(const std::function<void(const PythonFrame&, const PythonCode&)>& learn,
                         const std::function<void(const CpuSample&)>& take) {
  if (!stopped_) remove_threads();
  for (auto& [thread, ring] : rings_) ring->collect(learn, take);
  for (ThreadRing* ring : ended_) {
    ring->collect(learn, take);
    unused_rings().push_back(ring);  // no handler of that thread comes any more
  }
  ended_.clear();
  if (!stopped_) add_threads();
}

void CpuSampler::stop() {
  if (stopped_) return;
  stopped_ = true;
  for (auto& [thread, ring] : rings_) {
    ring->thread = 0;
    ::timer_delete(ring->timer);
  }
}

void CpuSampler::forget_in_child() {
  stopped_ = true;
  for (auto& [thread, ring] : rings_) ring->thread = 0;
  new (&unused_rings()) std::vector<ThreadRing*>;  // the parent may have been changing it
}

uint64_t CpuSampler::lost() const {
  uint64_t lost = lost_;
  for (const auto& [thread, ring] : rings_) lost += ring->lost.load();
  return lost;
}

}  // namespace heddle::profile
