#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "emulator/block.h"
#include "emulator/module.h"
#include "emulator/random.h"

namespace heddle::emulator {

struct LaunchShape {
  emulated::Dim grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  uint32_t shared_bytes = 0;
  bool cooperative = false;
  uint32_t resident = 1;  // blocks that fit on the device at once
};

// Runs the threads of one launch, one at a time and each until it waits, in an order that the seed decides. Blocks
// start when others end, or when no thread of those that run can go on, up to what fits on the device.
class Scheduler {
 public:
  Scheduler();

  // "" or what went wrong: the kernel's own failure, a deadlock, a write outside of shared memory. `arguments` are
  // those of cuLaunchKernel().
  std::string run(Kernel& kernel, const LaunchShape& shape, void** arguments, uint64_t seed);

  // What the functions of emulated::Api call, on the stack of the current thread.
  // Nothing of the thread's stack is destroyed, so its callers hold no memory.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(failure_), format, std::forward<Args>(args)...);
    abandon();
  }
  void poll(Place place);
  uint32_t barrier(uint32_t id, uint32_t threads, BarrierMode mode, bool predicate, Place place);
  emulated::Collected collect(Collective kind, uint32_t mask, uint64_t value, Place place);
  void cluster_arrive(Place place);
  void cluster_wait(Place place);
  uint8_t* cluster_shared(uint32_t rank);

  Thread& current() { return *current_; }
  Random& random() { return random_; }

  // Makes a thread that waits run again.
  void wake(Thread* thread);
  // Waits until wake().
  void wait(Wait what, uint32_t detail, Place place);

 private:
  static void fiber_body(Fiber* self);
  void run_current();
  void finish_current();
  void finish_block(Block& block);
  void select(Thread* thread);
  Thread* pick();
  // Goes on with another thread; returns when this one is picked again.
  void switch_away();
  void give_way(uint32_t one_in);
  [[noreturn]] void abandon();

  bool start_group();
  void start_block(Block& block, Group& group, uint32_t number, uint32_t rank);
  void set_up_warps(Block& block);
  void release_cluster(Group& group);
  void check_convergence(const Barrier& barrier);
  void reset();
  std::string describe_deadlock() const;
  uint32_t stalled_polls_limit() const;

  FiberPool fibers_;
  Random random_;
  void* main_stack_ = nullptr;

  Kernel* kernel_ = nullptr;
  LaunchShape shape_;
  void** arguments_ = nullptr;
  emulated::ThreadInfo** thread_slot_ = nullptr;
  uint32_t shared_base_ = 1024;

  Thread* current_ = nullptr;
  Block* current_block_ = nullptr;
  std::vector<Thread*> ready_;
  std::deque<Thread*> pollers_;
  uint64_t stale_polls_ = 0;  // since a thread last did anything but poll
  uint64_t barrier_stamp_ = 0;

  std::vector<uint32_t> unstarted_;  // numbers of groups, the next one last
  uint32_t live_blocks_ = 0;
  std::vector<Group*> live_groups_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Block*> free_blocks_;
  std::vector<Group*> free_groups_;
  std::string failure_;
};

// The one of this process; the driver runs one launch at a time.
Scheduler& scheduler();
const emulated::Api& api();

}  // namespace heddle::emulator
