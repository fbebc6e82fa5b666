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
  // `threads` counts the caller: 1 makes no threads at all and runs everything inline. Throws where the system starts fewer.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(begin, end, worker) over disjoint ranges that cover [0, tasks). A worker begins with a share of its own, the
  // same part of the tasks in every job, so that a kernel finds in its core's cache what the kernel before left there;
  // then it takes from the shares of others. Ranges shrink towards the end of a share, none is shorter than `grain` but
  // the last of all. `worker` is in [0, threads()) and no two calls that overlap in time within this
  // run() share it, so it may index per-thread scratch that belongs to this run(). Returns when all is done; the first
  // exception that a body threw is thrown again here, after the ranges that were already taken have ended.
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
  // How far a share is taken, in grains, below the number of the job that took it: a cursor of an earlier job is one of a
  // share that is whole, so nobody resets them.
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
  alignas(64) std::atomic<uint32_t> inside_;    // workers in the current job, or kClosed + that
  std::vector<Share> shares_;                   // of each worker
  std::atomic<bool> stop_{false}, failed_{false};
};

}  // namespace heddle
