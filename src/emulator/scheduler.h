#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/block.h"
#include "emulator/driver/module.h"
#include "emulator/memory.h"
#include "emulator/random.h"
#include "emulator/tensor_map.h"

namespace heddle::emulator {

struct LaunchShape {
  emulated::Dim grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  uint32_t shared_bytes = 0;
  bool cooperative = false;
  bool early = false;     // may begin before the launch in front of it has ended
  uint32_t resident = 1;  // blocks that fit on the device at once
};

// A box that TMA has not copied yet.
struct Box {
  TensorMap map;
  bool store;
  int32_t at[6];  // of windows: four coordinates, then the tap in width and height
  uint32_t shared_address, barrier;
  Thread* owner;
  uint32_t blocks;  // that receive it
  uint32_t group;   // of stores
  bool late;        // not before no thread can run
  Place place;
};

// A store of st.async that has not happened yet.
struct RemoteStore {
  Block* block;  // into which
  uint8_t* to;
  std::array<uint8_t, 16> value;
  uint32_t bytes, barrier;
  Place place;
};

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
  uint32_t barrier(uint32_t id, uint32_t threads, BarrierMode mode, bool predicate, Place place);
  // `action` runs once, when all lanes are there and before any goes on, with what they handed in.
  using Action = void (*)(Scheduler& self, const uint64_t* lanes, Place place);
  emulated::Collected collect(Collective kind, uint32_t mask, uint64_t value, Place place, Action action = nullptr);
  void cluster_arrive(Place place);
  void cluster_wait(Place place);
  uint8_t* cluster_shared(uint32_t rank);

  // The same for all lanes of a warp, for instructions that a whole warp executes.
  void whole_warp(Collective kind, uint64_t value, Place place, Action action);
  void copy_async(uint32_t to, const void* from, uint32_t bytes, uint32_t valid, Place place);
  void copy_commit();
  void copy_wait(uint32_t pending);
  void barrier_init(uint32_t address, uint32_t arrivals, Place place);
  void barrier_arrive(uint32_t address, uint32_t rank, uint32_t expect_bytes, Place place);
  void barrier_wait(uint32_t address, uint32_t parity, Place place);
  void store_async(uint32_t to, uint32_t rank, const void* from, uint32_t bytes, uint32_t barrier, Place place);
  void copy_shared(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier, uint32_t rank, Place place);
  void add_box(Box box);
  void store_commit();
  void store_wait(uint32_t pending, Place place);
  void wgmma(const emulated::WgmmaCall& call, Place place);
  void wgmma_wait(uint32_t pending, Place place);
  void set_registers(uint32_t count, Place place);
  void grid_dependency_wait(Place place);

  // What lies at a shared address of a block; fails the launch where that is not inside its shared memory.
  uint8_t* shared_at(Block& block, uint32_t address, uint32_t bytes, uint32_t alignment, const char* what, Place place);

  Thread& current() { return *current_; }
  Random& random() { return random_; }

  // Makes a thread that waits run again.
  void wake(Thread* thread);
  // Waits until wake().
  void wait(Wait what, uint32_t detail, Place place);

 private:
  static void fiber_body(Fiber* self);
  void prepare(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory, uint64_t seed);
  void proceed();
  void run_all();
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
  Block& block_of_cluster(uint32_t rank);
  void settle(uint8_t* barrier);
  void check_init_fence(const Block& block, Place place);
  void complete_bytes(Block& block, uint32_t barrier, uint32_t bytes, Place place);
  void complete_box(bool only_early);
  void complete_remote();
  void check_remote(const Block& block);
  void copy_box(const Box& box, Block& block);
  void check_copies(const Block& block);
  void reset();
  std::string describe_deadlock() const;
  uint32_t stalled_polls_limit() const;

  FiberPool fibers_;
  Random random_;
  void* main_stack_ = nullptr;
  bool on_fiber_ = false;

  Kernel* kernel_ = nullptr;
  LaunchShape shape_;
  void** arguments_ = nullptr;
  const Memory* memory_ = nullptr;
  emulated::ThreadInfo** thread_slot_ = nullptr;
  uint32_t shared_base_ = 1024;

  Thread* current_ = nullptr;
  Block* current_block_ = nullptr;
  std::vector<Thread*> ready_;
  std::deque<Thread*> pollers_;
  uint64_t stale_polls_ = 0;  // since a thread last did anything but poll
  uint64_t barrier_stamp_ = 0;

  std::vector<Box> boxes_;
  std::vector<RemoteStore> remote_;
  std::unordered_map<uint8_t*, std::vector<Thread*>> barrier_waiters_;

  std::vector<uint32_t> unstarted_;  // numbers of groups, the next one last
  uint32_t live_blocks_ = 0;
  std::vector<Group*> live_groups_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Block*> free_blocks_;
  std::vector<Group*> free_groups_;
  std::string failure_;
  bool previous_ended_ = true;
  std::vector<Thread*> dependent_;  // threads that wait for the launch in front
};

// The one whose threads run.
Scheduler& scheduler();
const emulated::Api& api();

}  // namespace heddle::emulator
