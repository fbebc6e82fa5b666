#include "profile/code/sampler.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>

#include "base/check.h"
#include "profile/thread_timer.h"

namespace heddle::profile::code {

struct Sampler::Ring {
  explicit Ring(size_t most) : samples(most) {}

  timer_t timer = {};
  std::vector<Sample> samples;
  std::atomic<size_t> taken{0};
};

// What the signal's handler, which knows of no object, may touch: it takes no lock and allocates nothing.
struct Sampler::Handler {
  static inline std::atomic<bool> used{false};
  static inline std::atomic<int> inside{0};  // handlers that run now
  static inline std::atomic<uint32_t> context{0};
  static inline std::array<std::atomic<Ring*>, kMostThreads> rings{};
  static inline int signal = 0;

  static void set(void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler = handler;
    ::sigaction(signal, &action, nullptr);
  }

  static void handle(int, siginfo_t* info, void* state) {
    const int error = errno;
    ++inside;
    const auto number = static_cast<size_t>(info->si_value.sival_int);
    Ring* const ring = info->si_code == SI_TIMER && number < rings.size() ? rings[number].load() : nullptr;
    if (ring != nullptr) {
      const size_t at = ring->taken.fetch_add(1);
      if (at < ring->samples.size()) ring->samples[at] = {program_counter_of(state), context.load()};
    }
    --inside;
    errno = error;
  }
};

Sampler::Sampler(int64_t period_nanoseconds, size_t most) : most_(most) {
  if (Handler::used.exchange(true)) {
    fail(ErrorCode::kInvalidArgument, "sampler", "this process samples already", "Wait until the other one has ended");
  }
  Handler::signal = free_real_time_signal();
  if (Handler::signal == 0) {
    Handler::used = false;
    fail(ErrorCode::kInvalidArgument, "sampler", "the process uses all signals of real time");
  }
  struct sigaction action = {};
  action.sa_sigaction = &Handler::handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(Handler::signal, &action, nullptr);
  try {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
      if (rings_.size() < kMostThreads) watch(std::stoi(entry.path().filename().string()), period_nanoseconds);
    }
  } catch (...) {
    stop();
    throw;
  }
}

Sampler::~Sampler() {
  stop();
}

void Sampler::watch(int thread, int64_t period) {
  const size_t number = rings_.size();
  sigval value = {};
  value.sival_int = static_cast<int>(number);
  rings_.push_back(std::make_unique<Ring>(most_));
  Handler::rings[number] = rings_.back().get();
  if (start_thread_timer(thread, CLOCK_MONOTONIC, Handler::signal, value, period, &rings_.back()->timer)) return;
  const int error = errno;
  Handler::rings[number] = nullptr;
  rings_.pop_back();
  if (error == EINVAL || error == ESRCH) return;  // the thread has ended
  fail(ErrorCode::kOutOfMemory, "sampler", "the system gives no timer for a thread",
       "Raise the limit of pending signals (ulimit -i)");
}

void Sampler::set_context(uint32_t context) {
  Handler::context = context;
}

void Sampler::stop() {
  if (!running_) return;
  running_ = false;
  for (const auto& ring : rings_) ::timer_delete(ring->timer);
  // Signals that are under way end here: what they do by default is to end the process.
  Handler::set(SIG_IGN);
  for (auto& ring : Handler::rings) ring = nullptr;
  while (Handler::inside != 0) std::this_thread::yield();
  Handler::set(SIG_DFL);
  Handler::used = false;
}

std::vector<Sample> Sampler::samples() const {
  std::vector<Sample> all;
  for (const auto& ring : rings_) {
    const auto count = static_cast<std::ptrdiff_t>(std::min(ring->taken.load(), ring->samples.size()));
    all.insert(all.end(), ring->samples.begin(), ring->samples.begin() + count);
  }
  return all;
}

int64_t Sampler::lost() const {
  int64_t lost = 0;
  for (const auto& ring : rings_) {
    const size_t taken = ring->taken, most = ring->samples.size();
    lost += taken > most ? static_cast<int64_t>(taken - most) : 0;
  }
  return lost;
}

}  // namespace heddle::profile::code
