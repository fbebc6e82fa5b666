// The interface between the emulator and kernels compiled for it. A unit of CUDA C++ becomes a shared object that
// exports `heddle_emulated_module` and one `heddle_kernel_NAME` per kernel. The emulator sets the two pointers of the
// module before it runs a thread, and serves calls through the functions of Api.
#pragma once

#include <stdint.h>

namespace heddle::emulated {

inline constexpr uint32_t kAbi = 8;

struct Dim {
  uint32_t x, y, z;
};

struct BlockInfo {
  Dim block_index, block_dim, grid_dim;
  uint32_t cluster_rank, cluster_blocks;
  uint8_t* shared;        // dynamic shared memory
  uint32_t shared_bytes;  // of dynamic shared memory
  uint32_t shared_base;   // its 32-bit address; the same in every block of a launch
};

struct ThreadInfo {
  Dim thread_index;
  uint32_t linear;  // index in the block
  const BlockInfo* block;
};

// The place where a kernel waits, for reports.
struct Place {
  const char* file;
  uint32_t line;
};

// The values that the lanes of a warp passed to a collective. `values` stays valid until the lane's collective after
// the next.
struct Collected {
  const uint64_t* values;  // 32; values of absent lanes are stale
  uint32_t present;
};

enum class Collective : uint32_t {
  kSync,
  kShuffle,
  kVote,
  kMatch,
  kReduce,
  kMma,
  kLoadMatrices,
  kStoreMatrices,
  kWgmma,
  kWgmmaFence,
  kWgmmaCommit,
  kWgmmaWait,
  kRegisters
};
inline constexpr uint32_t kOwnBlock = ~0u;

enum class BarrierMode : uint32_t { kSync, kArrive, kOr, kAnd, kCount };

// Element types of tensor-core operands.
enum class Element : uint32_t { kHalf, kBfloat, kTf32, kE4M3, kE5M2, kInt8, kUint8 };

// mma.sync m16n8 with 32 bytes of k: the registers of one lane. `d`: four f32, or s32 for integers.
struct MmaCall {
  Element a_type, b_type;
  void* d;
  const uint32_t* a;
  const uint32_t* b;
};

// wgmma.mma_async m64nN with 32 bytes of k. B is in shared memory, A in shared memory or in four words of each lane.
// `d`: n / 2 f32, or s32 for integers.
struct WgmmaCall {
  Element type;
  uint32_t n;
  void* d;
  uint64_t a, b;  // descriptors
  bool mn_a, mn_b, accumulate;
  const uint32_t* words;  // of A; null if A is in shared memory
};

struct Api {
  // Ends the launch with this text.
  void (*fail)(const char* text);
  // Ends the launch because of an access to an address that is no multiple of `alignment` bytes.
  void (*misaligned)(uint64_t address, uint32_t alignment, Place place);
  // Lets other threads run; for loops that wait for a value in memory.
  void (*poll)(Place place);
  // Called after an access to memory that other threads may poll, with the bits that it read and whether it changed
  // them.
  void (*saw)(const void* address, uint64_t bits, bool changed);
  // Barrier `id` of the block for `threads` threads (0: all). Returns the combination of the predicates.
  uint32_t (*barrier)(uint32_t id, uint32_t threads, BarrierMode mode, bool predicate, Place place);
  // Waits for the lanes in `mask` and exchanges a value with them.
  Collected (*collect)(Collective kind, uint32_t mask, uint64_t value, Place place);
  void (*cluster_arrive)(Place place);
  void (*cluster_wait)(Place place);
  // Dynamic shared memory of a block of the cluster.
  uint8_t* (*cluster_shared)(uint32_t rank);

  void (*mma)(const MmaCall& call, Place place);
  // ldmatrix and stmatrix of `count` matrices of 8x8 elements of 16 bits.
  void (*load_matrices)(uint32_t* words, uint32_t count, bool transposed, uint32_t address, Place place);
  void (*store_matrices)(const uint32_t* words, uint32_t count, bool transposed, uint32_t address, Place place);

  // cp.async and its groups.
  void (*copy_async)(uint32_t to, const void* from, uint32_t bytes, uint32_t valid, Place place);
  void (*copy_commit)();
  void (*copy_wait)(uint32_t pending);

  // mbarrier. `block`: the block of the cluster in which it lies, or kOwnBlock.
  void (*barrier_init)(uint32_t address, uint32_t arrivals, Place place);
  void (*barrier_arrive)(uint32_t address, uint32_t block, uint32_t expect_bytes, Place place);
  void (*barrier_wait)(uint32_t address, uint32_t parity, Place place);
  // st.async: stores into a block of the cluster and reports the bytes to an mbarrier there.
  void (*store_async)(uint32_t to, uint32_t block, const void* from, uint32_t bytes, uint32_t barrier, Place place);

  // fence.mbarrier_init, fence.proxy.async.
  void (*fence_barrier_init)();
  void (*fence_async)();

  // Copies shared memory to a block of the cluster, whose barrier counts the bytes.
  void (*copy_shared)(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier, uint32_t block, Place place);

  // Boxes of a tensor map. `blocks`: mask of the blocks of the cluster that receive the box; 0: this one.
  void (*load_box)(const void* map, uint32_t to, uint32_t barrier, const int32_t* coordinates, uint32_t rank,
                   uint32_t blocks, Place place);
  void (*store_box)(const void* map, uint32_t from, const int32_t* coordinates, uint32_t rank, Place place);
  void (*store_commit)();
  void (*store_wait)(uint32_t pending, Place place);

  void (*wgmma)(const WgmmaCall& call, Place place);
  void (*wgmma_fence)(Place place);
  void (*wgmma_commit)(Place place);
  void (*wgmma_wait)(uint32_t pending, Place place);
  // setmaxnreg.
  void (*set_registers)(uint32_t count, Place place);
  // griddepcontrol.wait.
  void (*grid_dependency_wait)(Place place);
};

struct ModuleInfo {
  uint32_t abi;
  ThreadInfo** thread;  // the thread that runs
  const Api** api;
};

struct KernelInfo {
  void (*run)(void** arguments);  // as the current thread
  const uint32_t* argument_bytes;
  uint32_t arguments;
  uint32_t max_threads;  // of a block; 0: no bound given
  Dim cluster;           // 0: none given
};

}  // namespace heddle::emulated
