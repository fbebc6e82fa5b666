// What a kernel compiled for the emulator and the emulator agree on. A unit of CUDA C++ becomes a shared object that
// exports `heddle_emulated_module` and one `heddle_kernel_NAME` per kernel; the emulator sets the two pointers of the
// module before it runs a thread and answers through the functions of Api.
#pragma once

#include <stdint.h>

namespace heddle::emulated {

inline constexpr uint32_t kAbi = 1;

struct Dim {
  uint32_t x, y, z;
};

struct BlockInfo {
  Dim block_index, block_dim, grid_dim;
  uint32_t cluster_rank, cluster_blocks;
  uint8_t* shared;        // dynamic shared memory
  uint32_t shared_bytes;  // of it
  uint32_t shared_base;   // its 32-bit address; the same in every block of a launch
};

struct ThreadInfo {
  Dim thread_index;
  uint32_t linear;  // index in the block
  const BlockInfo* block;
};

// Where a kernel waits, for reports.
struct Place {
  const char* file;
  uint32_t line;
};

// What the lanes of a warp handed in. `values` stays until the lane's collective after the next.
struct Collected {
  const uint64_t* values;  // 32, those of absent lanes are stale
  uint32_t present;
};

enum class Collective : uint32_t { kSync, kShuffle, kVote, kMatch, kReduce, kMatrix, kWarpgroup };
enum class BarrierMode : uint32_t { kSync, kArrive, kOr, kAnd, kCount };

struct Api {
  // Ends the launch with this text.
  void (*fail)(const char* text);
  // Lets others run; for loops that wait for a value in memory.
  void (*poll)(Place place);
  // Barrier `id` of the block for `threads` threads (0: all); the result is that of the predicates.
  uint32_t (*barrier)(uint32_t id, uint32_t threads, BarrierMode mode, bool predicate, Place place);
  // Waits for the lanes in `mask` and exchanges a value with them.
  Collected (*collect)(Collective kind, uint32_t mask, uint64_t value, Place place);
  void (*cluster_arrive)(Place place);
  void (*cluster_wait)(Place place);
  // Dynamic shared memory of a block of the cluster.
  uint8_t* (*cluster_shared)(uint32_t rank);
};

struct ModuleInfo {
  uint32_t abi;
  ThreadInfo** thread;  // the one that runs
  const Api** api;
};

struct KernelInfo {
  void (*run)(void** arguments);  // as the thread that is current
  const uint32_t* argument_bytes;
  uint32_t arguments;
  uint32_t max_threads;  // of a block; 0: no bound given
  Dim cluster;           // 0: none given
};

}  // namespace heddle::emulated
