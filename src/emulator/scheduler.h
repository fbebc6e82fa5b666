#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <iterator>
#include <string>
#include <vector>

#include "emulator/driver/module.h"
#include "emulator/grid.h"
#include "emulator/races/races.h"
#include "emulator/transfers.h"

namespace heddle::emulator {

// Runs the threads of one launch. Only one thread runs at a time, until it waits. The seed decides the order. A block
// starts when another block ends or when no running thread can continue, provided that the block fits on the device.
class Scheduler {
 public:
  Scheduler();

  // Runs a launch. Returns "" or an error message: the kernel's own failure, a deadlock, or a write outside of shared
  // memory. `arguments` are the kernel parameters of cuLaunchKernel(). TMA may access only `memory`.
  std::string run(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory, uint64_t seed);

  // begin() and finish() together do the work of run(), for a launch that begins before the previous launch has ended.
  // begin() runs some blocks until they wait for the previous launch, which another scheduler then runs. Before that
  // wait, the threads read memory as it was before the previous launch, and the previous launch sees their writes.
  void begin(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory, uint64_t seed);
  std::string finish();

  // The functions of emulated::Api call the following functions on the stack of the current thread. fail() runs no
  // destructors of that stack, so its callers must not own memory.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(failure_), format, std::forward<Args>(args)...);
    abandon();
  }
  void poll(Place place);
  void grid_dependency_wait(Place place);
  // Fails the launch if the access races. `clock`: of the thread that accesses memory, or that asked for a copy.
  void access(ThreadClock& clock, const MemoryAccess& access);

  Thread& current() { return *current_; }
  Random& random() { return random_; }

  // Makes a waiting thread ready to run.
  void wake(Thread* thread);
  // Blocks the current thread until wake() is called for it.
  void wait(Wait what, uint64_t detail, Place place);
  // Switches to another thread with a probability of 1 / `one_in`.
  void give_way(uint32_t one_in);
  Progress progress;  // of polling threads

  Transfers transfers;
  LaunchClocks clocks;

 private:
  static void fiber_body(Fiber* self);
  static void fail_access(const BadAccess& access);
  void prepare(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory, uint64_t seed);
  void proceed();
  void run_all();
  void finish_current();
  void finish_block(Block& block);
  void select(Thread* thread);
  void* resume(Thread* thread);
  Thread* pick();
  void switch_away();  // to another thread, until the scheduler picks the current one again
  [[noreturn]] void abandon();

  bool start_group();
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
  uint32_t launch_ = 0;             // its number for races
  std::vector<Thread*> dependent_;  // threads that wait for the previous launch
};

// The scheduler that is running a launch.
Scheduler& scheduler();
const emulated::Api& api();

// Returns the host address of the shared memory at `address` of a block. Fails the launch if any of the `bytes` bytes
// is outside the block's shared memory.
uint8_t* shared_at(Scheduler& s, Block& block, uint32_t address, uint32_t bytes, uint32_t alignment, const char* what,
                   Place place);
// Returns the block with this rank in the current thread's cluster. Fails the launch if that block has ended.
Block& block_of_cluster(Scheduler& s, uint32_t rank);

}  // namespace heddle::emulator
