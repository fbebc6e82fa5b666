#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace heddle {

// A fork-join pool. The calling thread works too. After a job, workers spin for some tens of microseconds and then
// sleep. So a fork and join costs one to two microseconds while a plan runs, and an idle pool costs nothing.
//
// The workers execute one job at a time. If another thread, or a task of the current job, calls run() meanwhile, the
// new job runs on the calling thread alone. The result is still correct, and there is no deadlock.
class ThreadPool {
 public:
  // `threads` includes the calling thread: 1 starts no thread and runs everything inline. Throws if the system cannot
  // start that many threads.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(begin, end, worker) on disjoint ranges that cover [0, tasks). Each worker starts with its own share of
  // the tasks. The share is the same in every job, so a worker finds data of the previous kernel in its core's cache. A
  // worker that has finished its share takes ranges from other workers' shares.
  //
  // Ranges shrink towards the end of a share; only the very last range may be shorter than `grain`. `worker` is in [0,
  // threads()). Concurrent calls of `body` within this run() have different `worker` values, so `worker` may index
  // per-thread scratch of this run(). Returns when all tasks are done. If bodies throw, the ranges already started
  // finish, and run() rethrows the first exception.
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
  // High half: the number of the last job that took a range from the share. Low half: how many grains that job has
  // taken. If the number is that of an earlier job, the current job has taken nothing, so cursors need no reset.
  struct alignas(64) Share {
    std::atomic<uint64_t> cursor{0};
  };

  void end_workers();
  void run_erased(int64_t tasks, int64_t grain, Call call, void* context);
  void worker_main(int worker);
  bool enter();                   // joins the current job; false if it is over
  void work(int worker);          // runs ranges until none is left
  void work_on(const Job& job, int share, int worker);
  bool wait_for(uint32_t& seen);  // waits for the next job; false if the pool shuts down

  const int threads_;
  std::vector<std::thread> workers_;

  Job job_;  // written only while no worker is in a job
  std::exception_ptr error_;
  std::mutex error_mutex_;

  alignas(64) std::atomic<bool> busy_{false};   // true while a run() uses the workers
  alignas(64) std::atomic<uint32_t> epoch_{0};  // the number of jobs so far; workers sleep on it
  alignas(64) std::atomic<uint32_t> inside_;    // workers in the current job; plus kClosed once no worker may join
  std::vector<Share> shares_;                   // one per worker
  std::atomic<bool> stop_{false}, failed_{false};
};

}  // namespace heddle
