#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "emulator/fiber.h"
#include "emulator/races/vector_clock.h"
#include "tile/arch/emulated/abi.h"

namespace heddle::emulator {

using emulated::BarrierMode;
using emulated::Collective;
using emulated::Place;

struct Block;
struct Warp;

// The event that a thread waits for. kReady: the thread can run, or has not started yet.
enum class Wait : uint8_t {
  kReady,
  kBarrier,
  kLanes,
  kCluster,
  kPoll,
  kTransactions,
  kStores,
  kProducts,
  kRegisters,
  kPrevious,
  kFinished
};

struct Thread : emulated::ThreadInfo {
  Fiber* fiber = nullptr;  // the fiber that the thread runs on; null if it has not started
  Block* owner = nullptr;
  Warp* warp = nullptr;
  Wait wait = Wait::kReady;
  uint64_t detail = 0;  // what the thread waits for: the number of a barrier, or a mask of lanes
  uint32_t result = 0;  // of the barrier that the thread waited at
  uint32_t cluster_phase = 0;
  uint32_t copy_group = 0, store_group = 0;  // the number of the copy group that is not committed yet
  uint64_t async_fences = 0;                 // value of Block::async_fences when this thread last waited for stores
  Place place{};
  ThreadClock clock;  // for races; unused otherwise
};

// A pending cp.async copy.
struct Copy {
  uint8_t* to;
  const void* from;
  uint32_t bytes, valid, group;
};

// A pending wgmma. It executes for the whole warpgroup once all four warps have issued it.
struct Product {
  emulated::WgmmaCall call;
  std::array<void*, 128> sums;             // accumulators of each thread of the warpgroup
  std::array<const uint32_t*, 128> words;  // each thread's registers that contain A, if A is in registers
  uint32_t warps = 0;                      // the number of warps that have issued it
};

struct Warpgroup {
  std::deque<Product> products;
  uint64_t done = 0;  // the number of products that have executed
  std::vector<Thread*> waiting;
};

// An exchange of values between the lanes of a mask. It has two sets of values, since a fast lane may start the next
// exchange while a slow lane still reads the values of the current one.
struct Exchange {
  uint64_t mask = 0, arrived = 0;
  uint32_t turn = 0;
  Collective kind = Collective::kSync;
  Place place{};
  std::array<Thread*, 64> waiting{};
  uint32_t waiting_count = 0;
  SyncClock clock;
  std::array<std::array<uint64_t, 64>, 2> values{};
};

struct Warp {
  Warp() = default;
  Warp(Warp&&) = default;
  Warp(const Warp&) = delete;
  Warp& operator=(const Warp&) = delete;

  uint64_t lanes = 0;  // mask of existing lanes
  std::vector<std::unique_ptr<Exchange>> exchanges;
  // For checking that all lanes leave a barrier at the same source location.
  uint64_t barrier_stamp = 0;
  Place barrier_place{};
  uint64_t products = 0;          // the number of products that the warp has issued
  std::vector<uint64_t> commits;  // value of `products` at each commit
  bool fenced = false;
  uint32_t registers = 0;         // per thread
  uint32_t registers_wanted = 0;  // the registers per thread that the warp waits for, if more than `registers`
  std::vector<Thread*> waiting;   // threads that wait for registers
};

struct Barrier {
  uint32_t expected = 0, arrived = 0;
  bool of_block = false;                 // of all threads of the block that have not exited
  uint32_t any = 0, all = 1, count = 0;  // results of the predicates' reduction
  std::vector<Thread*> waiting;
  SyncClock clock;
};

// Blocks that are resident together: the blocks of a cluster.
struct Group {
  std::vector<Block*> blocks;
  uint32_t live_blocks = 0, live_threads = 0;
  uint32_t cluster_arrived = 0, cluster_phase = 0;
  std::vector<Thread*> cluster_waiting;
  SyncClock cluster_clock, cluster_released;  // of the present phase; of the one before
};

struct Block : emulated::BlockInfo {
  static constexpr int kBarriers = 16;
  static constexpr size_t kZoneBytes = 1024;  // size of each red zone before and after shared memory

  Group* group = nullptr;
  uint32_t warp_lanes = 32;
  uint32_t live_threads = 0;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  std::array<Barrier, kBarriers> barriers;
  std::vector<std::vector<Copy>> copies;  // pending copies by thread; empty if the block never copied
  uint32_t free_registers = 0;
  uint64_t async_fences = 0;        // the number of fence.proxy.async by all threads
  uint64_t barrier_stamp = 0;       // the number of block barriers so far
  uint64_t resumed_since_poll = 0;  // the number of resumptions since a thread last polled
  bool waited = false;              // a thread has waited for the preceding launch
  bool unfenced_init = false;       // an mbarrier has been initialised after the last fence.mbarrier_init

  // Called when a thread resumes. True if threads have resumed so often since the last poll that the block does more
  // than poll memory in a loop with a few barriers.
  bool works() { return ++resumed_since_poll > 64 * threads.size(); }
  // Poisons `bytes` bytes of shared memory and writes the red zones around it. `base` is its 32-bit address.
  void set_shared(uint32_t bytes, uint32_t base);
  // True if both red zones are unchanged.
  bool zones_intact() const;

 private:
  std::vector<uint8_t> memory_;
  uint8_t* zone_ = nullptr;  // start of the first red zone
};

// The source file of `place`, or "?" if unknown.
inline const char* name_of(Place place) {
  return place.file == nullptr ? "?" : place.file;
}

// The fill byte of fresh memory: a NaN in f64, f32, f16 and bf16, -1 in signed integers.
inline constexpr uint8_t kPoisonByte = 0xFF;
inline constexpr uint8_t kZoneByte = 0xA5;

}  // namespace heddle::emulator
