#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <iterator>
#include <string>
#include <vector>

#include "emulator/driver/module.h"
#include "emulator/grid.h"
#include "emulator/transfers.h"

namespace heddle::emulator {

// Runs the threads of one launch, one at a time and each until it waits, in an order that the seed decides. Blocks
// start when others end, or when no thread of those that run can go on, up to what fits on the device.
class Scheduler {
 public:
  Scheduler();

  // "" or what went wrong: the kernel's own failure, a deadlock, a write outside of shared memory. `arguments` are
  // those of cuLaunchKernel(), `memory` what TMA may touch.
  std::string run(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory, uint64_t seed);

  // The same in two steps, for a launch that begins early: some blocks run to where they wait for the launch in front,
  // which another scheduler then runs; what they read before is old, what they write is seen by that launch.
  void begin(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory, uint64_t seed);
  std::string finish();

  // What the functions of emulated::Api call, on the stack of the current thread.
  // Nothing of the thread's stack is destroyed, so its callers hold no memory.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(failure_), format, std::forward<Args>(args)...);
    abandon();
  }
  void poll(Place place);
  void grid_dependency_wait(Place place);

  Thread& current() { return *current_; }
  Random& random() { return random_; }

  // Makes a thread that waits run again.
  void wake(Thread* thread);
  // Waits until wake().
  void wait(Wait what, uint32_t detail, Place place);
  // Now and then the current thread is not the first to go on.
  void give_way(uint32_t one_in);
  // Something happened that polling threads may be waiting for.
  Progress progress;

  Transfers transfers;

 private:
  static void fiber_body(Fiber* self);
  static void fail_access(const BadAccess& access);
  void prepare(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory, uint64_t seed);
  void proceed();
  void run_all();
  void run_current();
  void finish_current();
  void finish_block(Block& block);
  void select(Thread* thread);
  void* resume(Thread* thread);
  Thread* pick();
  // Goes on with another thread; returns when this one is picked again.
  void switch_away();
  [[noreturn]] void abandon();

  bool start_group() { return grid_.start_group(ready_); }
  void reset();

  FiberPool fibers_;
  Random random_;
  void* main_stack_ = nullptr;
  bool on_fiber_ = false;

  Kernel* kernel_ = nullptr;
  const Memory* memory_ = nullptr;
  void** arguments_ = nullptr;
  emulated::ThreadInfo** thread_slot_ = nullptr;

  Thread* current_ = nullptr;
  Block* current_block_ = nullptr;
  std::vector<Thread*> ready_;
  std::deque<Thread*> pollers_;

  Grid grid_;
  std::string failure_;
  bool previous_ended_ = true;
  std::vector<Thread*> dependent_;  // threads that wait for the launch in front
};

// The one whose threads run.
Scheduler& scheduler();
const emulated::Api& api();

// What lies at a shared address of a block; fails the launch where that is not inside its shared memory.
uint8_t* shared_at(Scheduler& s, Block& block, uint32_t address, uint32_t bytes, uint32_t alignment, const char* what,
                   Place place);
// A block of the current thread's cluster, which may not have ended.
Block& block_of_cluster(Scheduler& s, uint32_t rank);

}  // namespace heddle::emulator
