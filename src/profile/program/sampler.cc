#include "profile/program/sampler.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/check.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace heddle::profile {

// What a thread's handler writes and collect() reads: one writer, one reader.
struct ThreadRing {
  static constexpr size_t kSamples = 64, kFrames = 192;
  struct Slot {
    uint64_t program_counter = 0;
    int64_t nanoseconds = 0;
    size_t count = 0;
    std::array<PythonFrame, kFrames> frames;
  };
  std::array<Slot, kSamples> slots;
  std::atomic<uint32_t> written{0}, read{0};
  std::atomic<uint64_t> lost{0};
  std::atomic<bool> on{true};
  int64_t last = 0;  // CPU time of the thread at its last sample; its handler's
  timer_t timer{};
  std::string name;
};

namespace {

// Programs seldom use it; others of its kind have meanings.
constexpr int kSignal = SIGPROF;
PythonRuntime sampled_python;

int64_t thread_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

uint64_t program_counter_of(const void* context) {
#if defined(__x86_64__)
  return static_cast<uint64_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#else
  return 0;
#endif
}

void on_timer(int, siginfo_t* info, void* context) {
  auto* ring = static_cast<ThreadRing*>(info->si_value.sival_ptr);
  if (info->si_code != SI_TIMER || ring == nullptr || !ring->on.load(std::memory_order_acquire)) return;
  const int error = errno;
  const uint32_t written = ring->written.load(std::memory_order_relaxed);
  if (written - ring->read.load(std::memory_order_acquire) < ThreadRing::kSamples) {
    ThreadRing::Slot& slot = ring->slots[written % ThreadRing::kSamples];
    const int64_t now = thread_nanoseconds();
    slot.nanoseconds = now - ring->last;
    ring->last = now;
    slot.program_counter = program_counter_of(context);
    slot.count = walk_python(sampled_python, slot.frames);
    ring->written.store(written + 1, std::memory_order_release);
  } else {
    ring->lost.fetch_add(1, std::memory_order_relaxed);
  }
  errno = error;
}

// It stays when sampling ends: a signal may be under way, whose default is to end the process.
void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_timer;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(kSignal, &action, nullptr);
  });
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

bool start_timer(ThreadRing& ring, int thread, double rate) {
  timespec now{};
  if (::clock_gettime(cpu_clock_of(thread), &now) != 0) return false;
  ring.last = static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSignal;
  event.sigev_value.sival_ptr = &ring;
  event.sigev_notify_thread_id = thread;
  if (::timer_create(cpu_clock_of(thread), &event, &ring.timer) != 0) return false;
  const auto every = static_cast<int64_t>(1e9 / rate);
  itimerspec spec{};
  spec.it_interval = {static_cast<time_t>(every / 1000000000), static_cast<long>(every % 1000000000)};
  spec.it_value = spec.it_interval;
  return ::timer_settime(ring.timer, 0, &spec, nullptr) == 0;
}

}  // namespace

CpuSampler::CpuSampler(const PythonRuntime& python, double rate) : rate_(rate) {
  HEDDLE_CHECK(rate > 0, "{} samples a second", rate);
  sampled_python = python;
  install_handler();
  add_threads();
}

CpuSampler::~CpuSampler() {
  stop();
  // A handler may be at work on a thread that lives: what it writes to stays.
  for (auto& [thread, ring] : rings_) static_cast<void>(ring.release());
}

void CpuSampler::add_threads() {
  const int self = static_cast<int>(::syscall(SYS_gettid));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const int thread = std::atoi(entry.path().filename().c_str());
    if (thread == self && seen_ > 0) continue;  // who collects is no part of the program
    if (rings_.count(thread) != 0) continue;
    auto ring = std::make_unique<ThreadRing>();
    ring->name = name_of(thread);
    if (!start_timer(*ring, thread, rate_)) continue;  // it has ended
    rings_.emplace(thread, std::move(ring));
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
    lost_ += at->second->lost.load();
    ended_.push_back(std::move(at->second));
    at = rings_.erase(at);
  }
}

void CpuSampler::collect(const std::function<void(const CpuSample&)>& take) {
  const auto drain = [&](ThreadRing& ring) {
    uint32_t read = ring.read.load(std::memory_order_relaxed);
    for (; read != ring.written.load(std::memory_order_acquire); ++read) {
      const ThreadRing::Slot& slot = ring.slots[read % ThreadRing::kSamples];
      take({std::span(slot.frames).first(slot.count), slot.program_counter, slot.nanoseconds, &ring.name});
      ring.read.store(read + 1, std::memory_order_release);
    }
  };
  if (!stopped_) remove_threads();
  for (auto& [thread, ring] : rings_) drain(*ring);
  for (std::unique_ptr<ThreadRing>& ring : ended_) drain(*ring);
  ended_.clear();
  if (!stopped_) add_threads();
}

void CpuSampler::stop() {
  if (stopped_) return;
  stopped_ = true;
  for (auto& [thread, ring] : rings_) {
    ring->on.store(false, std::memory_order_release);
    ::timer_delete(ring->timer);
  }
}

void CpuSampler::forget_in_child() {
  stopped_ = true;
  for (auto& [thread, ring] : rings_) ring->on.store(false);
}

uint64_t CpuSampler::lost() const {
  uint64_t lost = lost_;
  for (const auto& [thread, ring] : rings_) lost += ring->lost.load();
  return lost;
}

}  // namespace heddle::profile
