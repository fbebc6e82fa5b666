#pragma once

#include <array>
#include <cstdint>
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
enum class Wait : uint8_t { kReady, kBarrier, kLanes, kCluster, kPoll, kFinished };

struct Thread : emulated::ThreadInfo {
  Fiber* fiber = nullptr;  // where it waits; null: it has not started
  Block* owner = nullptr;
  Warp* warp = nullptr;
  Wait wait = Wait::kReady;
  uint32_t detail = 0;  // which barrier, which lanes
  uint32_t result = 0;  // of the barrier
  uint32_t cluster_phase = 0;
  Place place{};
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
  uint32_t lanes = 0;  // that exist
  std::vector<std::unique_ptr<Exchange>> exchanges;
  // For the check that lanes leave a barrier from the same place.
  uint64_t barrier_stamp = 0;
  Place barrier_place{};
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
  std::array<Barrier, kBarriers> barriers;

  // Poisons `bytes` of shared memory with their red zones; `base` is their 32-bit address.
  void set_shared(uint32_t bytes, uint32_t base);
  // Whether both red zones are as they were.
  bool zones_intact() const;

 private:
  std::vector<uint8_t> memory_;
  uint8_t* zone_ = nullptr;  // start of the first
};

// What fresh memory is filled with: a signalling NaN in f32 and f64, a NaN in f16 and bf16, -1 or so in integers.
inline constexpr uint8_t kPoisonByte = 0xFF;
inline constexpr uint8_t kZoneByte = 0xA5;

}  // namespace heddle::emulator
