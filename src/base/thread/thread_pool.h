#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace heddle {

// A fork-join pool. The calling thread works too; workers spin for some tens of microseconds after a job and then
// sleep, so a fork and join costs one to two microseconds while a plan runs and nothing while it does not.
//
// One job uses the workers at a time. A second caller (another thread, or a task that calls run() itself) finds them
// busy and runs its job alone: always correct, never a deadlock.
class ThreadPool {
 public:
  // `threads` includes the calling thread: 1 starts no thread and runs everything inline. Throws if the system cannot
  // start that many.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(begin, end, worker) over disjoint ranges that cover [0, tasks). Each worker starts with its own share,
  // which is the same part of the tasks in every job: a kernel then finds in its core's cache the data that the
  // previous kernel left there. After that the worker takes ranges from the shares of others. Ranges shrink towards the
  // end of a share; only the last range of all may be shorter than `grain`. `worker` is in [0, threads()). Calls that
  // overlap in time within this run() never have the same `worker`, so it may index per-thread scratch of this run().
  // Returns when all tasks are done. The first exception that a body throws is rethrown here after the ranges already
  // taken have ended.
  template <typename Body>
  void run(int64_t tasks, Body&& body, int64_t grain = 1) {
    using Plain = std::remove_reference_t<Body>;
    run_erased(
        tasks, grain,
        [](void* context, int64_t begin, int64_t end, int worker) {
          (*static_cast<Plain*>(context))(begin, end, worker);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* context, int64_t begin, int64_t end, int worker);

  struct Job {
    Call call = nullptr;
    void* context = nullptr;
    int64_t tasks = 0, grain = 1;
    uint32_t number = 0;
  };
  // High half: the number of the last job that took from the share; low half: the grains it has taken. A cursor with
  // the number of an earlier job means that nothing is taken yet, so no job has to reset cursors.
  struct alignas(64) Share {
    std::atomic<uint64_t> cursor{0};
  };

  void end_workers();
  void run_erased(int64_t tasks, int64_t grain, Call call, void* context);
  void worker_main(int worker);
  bool enter();                   // joins the current job, false when it is over
  void work(int worker);          // takes ranges until none is left
  void work_on(const Job& job, int share, int worker);
  bool wait_for(uint32_t& seen);  // the next job; false: the pool ends

  const int threads_;
  std::vector<std::thread> workers_;

  Job job_;  // written only while no worker is inside
  std::exception_ptr error_;
  std::mutex error_mutex_;

  alignas(64) std::atomic<bool> busy_{false};   // a run() holds the workers
  alignas(64) std::atomic<uint32_t> epoch_{0};  // counts jobs; workers sleep on it
  alignas(64) std::atomic<uint32_t> inside_;    // workers in the current job; plus kClosed once nobody may join
  std::vector<Share> shares_;                   // one per worker
  std::atomic<bool> stop_{false}, failed_{false};
};

}  // namespace heddle
