#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "emulator/fiber.h"
#include "tile/arch/emulated/abi.h"

namespace heddle::emulator {

using emulated::BarrierMode;
using emulated::Collective;
using emulated::Place;

struct Block;
struct Warp;

// What a thread waits for. kReady: it may run or has not started.
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
  Fiber* fiber = nullptr;  // where it waits; null: it has not started
  Block* owner = nullptr;
  Warp* warp = nullptr;
  Wait wait = Wait::kReady;
  uint32_t detail = 0;  // which barrier, which lanes
  uint32_t result = 0;  // of the barrier
  uint32_t cluster_phase = 0;
  uint32_t copy_group = 0, store_group = 0;  // number of the group that is not committed yet
  uint64_t async_fences = 0;                 // of the block when this thread last waited for stores
  Place place{};
};

// A copy of cp.async that has not happened yet.
struct Copy {
  uint8_t* to;
  const void* from;
  uint32_t bytes, valid, group;
};

// A wgmma that has not happened yet. It happens when all four warps have asked for it, for all of them at once.
struct Product {
  emulated::WgmmaCall call;
  std::array<void*, 128> sums;             // of each thread of the warpgroup
  std::array<const uint32_t*, 128> words;  // of A, where it is in registers
  uint32_t warps = 0;                      // how many asked
};

struct Warpgroup {
  std::deque<Product> products;
  uint64_t done = 0;  // how many products happened
  std::vector<Thread*> waiting;
};

// One exchange between lanes that name the same mask. Two sets of values: a lane may be in the next exchange while
// another still reads this one's.
struct Exchange {
  uint32_t mask = 0, arrived = 0, turn = 0;
  Collective kind = Collective::kSync;
  Place place{};
  std::array<Thread*, 32> waiting{};
  uint32_t waiting_count = 0;
  std::array<std::array<uint64_t, 32>, 2> values{};
};

struct Warp {
  Warp() = default;
  Warp(Warp&&) = default;
  Warp(const Warp&) = delete;
  Warp& operator=(const Warp&) = delete;

  uint32_t lanes = 0;  // that exist
  std::vector<std::unique_ptr<Exchange>> exchanges;
  // For the check that lanes leave a barrier from the same place.
  uint64_t barrier_stamp = 0;
  Place barrier_place{};
  uint64_t products = 0;          // how many it asked for
  std::vector<uint64_t> commits;  // how many at each commit
  bool fenced = false;
  uint32_t registers = 0;         // per thread
  uint32_t registers_wanted = 0;  // more than it has: it waits for them
  std::vector<Thread*> waiting;   // for registers
};

struct Barrier {
  uint32_t expected = 0, arrived = 0;
  uint32_t any = 0, all = 1, count = 0;  // of the predicates
  std::vector<Thread*> waiting;
};

// Blocks that live together: those of a cluster.
struct Group {
  std::vector<Block*> blocks;
  uint32_t live_blocks = 0, live_threads = 0;
  uint32_t cluster_arrived = 0, cluster_phase = 0;
  std::vector<Thread*> cluster_waiting;
};

struct Block : emulated::BlockInfo {
  static constexpr int kBarriers = 16;
  static constexpr size_t kZoneBytes = 1024;  // before and behind shared memory

  Group* group = nullptr;
  uint32_t live_threads = 0;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  std::array<Barrier, kBarriers> barriers;
  std::vector<std::vector<Copy>> copies;  // by thread; empty where there never were any
  uint32_t free_registers = 0;
  uint64_t async_fences = 0;        // fence.proxy.async of all threads
  uint64_t barrier_stamp = 0;       // counts the block's barriers
  uint64_t resumed_since_poll = 0;  // threads resumed since one of them last polled
  bool waited = false;              // a thread waited for the preceding launch
  bool unfenced_init = false;       // an mbarrier was initialised after the last fence.mbarrier_init

  // Called when a thread resumes. True if the block does more than poll memory in a loop with a few barriers.
  bool works() { return ++resumed_since_poll > 64 * threads.size(); }
  // Poisons `bytes` of shared memory with their red zones; `base` is their 32-bit address.
  void set_shared(uint32_t bytes, uint32_t base);
  // Whether both red zones are as they were.
  bool zones_intact() const;

 private:
  std::vector<uint8_t> memory_;
  uint8_t* zone_ = nullptr;  // start of the first
};

// Where something was asked for.
inline const char* name_of(Place place) {
  return place.file == nullptr ? "?" : place.file;
}

// What fresh memory is filled with: a signalling NaN in f32 and f64, a NaN in f16 and bf16, -1 or so in integers.
inline constexpr uint8_t kPoisonByte = 0xFF;
inline constexpr uint8_t kZoneByte = 0xA5;

}  // namespace heddle::emulator
