#include "base/thread/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/interface/option.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread/cancel.h"
#include "base/thread/thread.h"

namespace heddle {
namespace {

// Bit of `inside_` that keeps late workers out of a job whose caller is about to return.
constexpr uint32_t kClosed = 1u << 31;
// Longer than the serial steps between two parallel kernels of a plan, short against a scheduler's time slice.
constexpr auto kSpin = std::chrono::microseconds(60);

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// In a job that the caller can cancel, workers run in the caller's scope and start no range after it is cancelled.
struct CancellableJob {
  void (*call)(void* context, int64_t begin, int64_t end, int worker);
  void* context;
  Cancellation* cancellation;

  static void run(void* self, int64_t begin, int64_t end, int worker) {
    const auto& job = *static_cast<const CancellableJob*>(self);
    if (Cancellation::current() == job.cancellation) return job.checked(begin, end, worker);
    const CancelScope scope(job.cancellation, CancelScope::Asks::kNo);
    job.checked(begin, end, worker);
  }
  void checked(int64_t begin, int64_t end, int worker) const {
    check_cancelled();
    call(context, begin, end, worker);
  }
};

}  // namespace

ThreadPool::ThreadPool(int threads)
    : threads_(std::clamp(threads, 1, 1024)), inside_(kClosed), shares_(static_cast<size_t>(threads_)) {
  workers_.reserve(static_cast<size_t>(threads_ - 1));
  try {
    for (int i = 1; i < threads_; ++i) workers_.emplace_back([this, i] { worker_main(i); });
  } catch (const std::system_error& error) {
    const size_t started = workers_.size();
    end_workers();
    fail(ErrorCode::kOutOfMemory, fmt::format("{} threads", threads_),
         fmt::format("the system started {} of {}, and about {} bytes are available: {}", started, threads_ - 1,
                     available_memory(), error.what()),
         fmt::format("Ask for fewer ({}), or raise the limits of this process (ulimit -a)", option::threads()));
  }
}

std::unique_ptr<ThreadPool> pool_of_up_to(int threads) {
  for (int count = threads; count > 1; count /= 2) {
    try {
      return std::make_unique<ThreadPool>(count);
    } catch (const Error& error) {
      warn_once(fmt::format("{}: {}: this takes longer. {}", error.where(), error.why(), kMoreProcesses));
    }
  }
  return std::make_unique<ThreadPool>(1);
}

ThreadPool::~ThreadPool() {
  end_workers();
}

void ThreadPool::end_workers() {
  stop_.store(true);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_erased(int64_t tasks, int64_t grain, Call call, void* context) {
  if (tasks <= 0) return;
  Cancellation* const cancellation = Cancellation::current();
  CancellableJob cancellable{call, context, cancellation};
  if (cancellation != nullptr) call = &CancellableJob::run, context = &cancellable;
  grain = std::max<int64_t>(grain, 1);
  if (threads_ == 1 || tasks <= grain || busy_.exchange(true, std::memory_order_acquire)) {
    call(context, 0, tasks, 0);
    return;
  }
  // Grains of a share are counted in 32 bits.
  grain = std::max(grain, tasks >> 31);
  const uint32_t number = job_.number + 1;
  if (number == 0) {
    for (Share& share : shares_) share.cursor.store(0, std::memory_order_relaxed);
  }
  job_ = {call, context, tasks, grain, std::max(number, 1u)};
  error_ = nullptr;
  failed_.store(false, std::memory_order_relaxed);
  inside_.store(0, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();  // no system call when nobody sleeps

  work(0);
  // From here no worker can enter; those inside still hold ranges.
  inside_.fetch_or(kClosed, std::memory_order_acq_rel);
  for (int spins = 0; inside_.load(std::memory_order_acquire) != kClosed; ++spins) {
    if (spins < 4096) {
      relax();
    } else {
      if (cancellation != nullptr) cancellation->is_cancelled();  // so that workers see it before their next range
      std::this_thread::yield();
    }
  }
  const std::exception_ptr error = std::exchange(error_, nullptr);
  busy_.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

void ThreadPool::work(int worker) {
  const Job job = job_;
  for (int turn = 0; turn < threads_; ++turn) work_on(job, (worker + turn) % threads_, worker);
}

void ThreadPool::work_on(const Job& job, int share, int worker) {
  const int64_t grains = (job.tasks + job.grain - 1) / job.grain;
  const int64_t first = grains * share / threads_, count = grains * (share + 1) / threads_ - first;
  std::atomic<uint64_t>& cursor = shares_[static_cast<size_t>(share)].cursor;
  uint64_t seen = cursor.load(std::memory_order_relaxed);
  while (true) {
    const int64_t taken = seen >> 32 == job.number ? static_cast<int64_t>(seen & UINT32_MAX) : 0;
    if (taken >= count || failed_.load(std::memory_order_relaxed)) return;
    // The owner takes half of what is left, so that many small tasks need few takes and the end stays balanced; others
    // take enough to keep all of them busy.
    const int64_t size = std::max<int64_t>(1, (count - taken) / (share == worker ? 2 : 2 * threads_));
    const uint64_t next = uint64_t{job.number} << 32 | static_cast<uint64_t>(taken + size);
    if (!cursor.compare_exchange_weak(seen, next, std::memory_order_relaxed)) continue;
    seen = next;
    const int64_t begin = (first + taken) * job.grain;
    try {
      job.call(job.context, begin, std::min(job.tasks, begin + size * job.grain), worker);
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
      failed_.store(true, std::memory_order_relaxed);
      return;
    }
  }
}

bool ThreadPool::enter() {
  uint32_t inside = inside_.load(std::memory_order_acquire);
  while ((inside & kClosed) == 0) {
    if (inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

bool ThreadPool::wait_for(uint32_t& seen) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  for (int spins = 0; epoch_.load(std::memory_order_acquire) == seen; ++spins) {
    relax();
    if (spins % 64 == 63 && std::chrono::steady_clock::now() > deadline) {
      epoch_.wait(seen, std::memory_order_acquire);
      break;
    }
  }
  seen = epoch_.load(std::memory_order_acquire);
  return !stop_.load(std::memory_order_relaxed);
}

void ThreadPool::worker_main(int worker) {
  uint32_t seen = 0;
  while (wait_for(seen)) {
    if (!enter()) continue;
    work(worker);
    inside_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace heddle
