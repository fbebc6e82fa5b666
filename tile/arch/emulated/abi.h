// The interface between the emulator and kernels compiled for it. A CUDA C++ file is compiled to a shared object that
// exports `heddle_emulated_module`, and one `heddle_kernel_NAME` per kernel. Before running a thread, the emulator sets
// the two pointers of ModuleInfo. Kernels call the emulator through the functions of Api.
#pragma once

#include <stdint.h>

namespace heddle::emulated {

inline constexpr uint32_t kAbi = 10;

struct Dim {
  uint32_t x, y, z;
};

struct BlockInfo {
  Dim block_index, block_dim, grid_dim;
  uint32_t cluster_rank, cluster_blocks;
  uint8_t* shared;        // dynamic shared memory
  uint32_t shared_bytes;  // size of the dynamic shared memory
  uint32_t shared_base;   // 32-bit address of `shared`; equal for every block of a launch
};

struct ThreadInfo {
  Dim thread_index;
  uint32_t linear;  // linear index of the thread in its block
  const BlockInfo* block;
};

// The source location at which a kernel waits, for reports.
struct Place {
  const char* file;
  uint32_t line;
};

// The values that the lanes of a warp passed to a collective. A lane may read `values` until it calls the next
// collective.
struct Collected {
  const uint64_t* values;  // one per lane of the warp; values of lanes that are not in `present` are stale
  uint64_t present;
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

// How a kernel accesses global memory. An atomic operation that reads and writes is kAtomicWrite. kAcquire: an atomic
// read that later accesses are ordered after.
enum class Access : uint32_t { kRead, kWrite, kAtomicRead, kAtomicWrite, kAcquire };

enum class BarrierMode : uint32_t { kSync, kArrive, kOr, kAnd, kCount };

// Element types of tensor-core operands.
enum class Element : uint32_t { kHalf, kBfloat, kTf32, kE4M3, kE5M2, kInt8, kUint8 };

// The operands of mma.sync m16n8 with 32 bytes of k, for one lane. `d` has four f32, or s32 for integers.
struct MmaCall {
  Element a_type, b_type;
  void* d;
  const uint32_t* a;
  const uint32_t* b;
};

// The operands of wgmma.mma_async m64nN with 32 bytes of k. B is in shared memory. A is in shared memory or in four
// words of each lane. `d` has n / 2 f32, or s32 for integers.
struct WgmmaCall {
  Element type;
  uint32_t n;
  void* d;
  uint64_t a, b;  // descriptors
  bool mn_a, mn_b, accumulate;
  const uint32_t* words;  // A in registers; null if A is in shared memory
};

struct Api {
  // Ends the launch with this error message.
  void (*fail)(const char* text);
  // Ends the launch because an access used an address that is not a multiple of `alignment` bytes.
  void (*misaligned)(uint64_t address, uint32_t alignment, Place place);
  // Lets other threads run. Called in loops that wait for a value in memory.
  void (*poll)(Place place);
  // Called after an access to memory that other threads may poll. `bits` is the value that the access read. `changed`:
  // the access changed the value.
  void (*saw)(const void* address, uint64_t bits, bool changed);
  // Called before an access in units that report them (ModuleInfo). If `place` has no line, `place.file` is the address
  // of the code.
  void (*access)(const void* address, uint32_t bytes, Access kind, Place place);
  // __threadfence(): orders the thread's accesses for other threads that use atomics.
  void (*fence)();
  // A barrier of the block for `threads` threads (0: all threads), with the number `id`. Returns the combination of the
  // predicates according to `mode`.
  uint32_t (*barrier)(uint32_t id, uint32_t threads, BarrierMode mode, bool predicate, Place place);
  // Waits for the lanes in `mask` and exchanges one value per lane.
  Collected (*collect)(Collective kind, uint64_t mask, uint64_t value, Place place);
  void (*cluster_arrive)(Place place);
  void (*cluster_wait)(Place place);
  // The dynamic shared memory of block `rank` of the cluster.
  uint8_t* (*cluster_shared)(uint32_t rank);

  void (*mma)(const MmaCall& call, Place place);
  // ldmatrix and stmatrix for `count` matrices of 8x8 16-bit elements.
  void (*load_matrices)(uint32_t* words, uint32_t count, bool transposed, uint32_t address, Place place);
  void (*store_matrices)(const uint32_t* words, uint32_t count, bool transposed, uint32_t address, Place place);

  // cp.async and its groups.
  void (*copy_async)(uint32_t to, const void* from, uint32_t bytes, uint32_t valid, Place place);
  void (*copy_commit)();
  void (*copy_wait)(uint32_t pending);

  // mbarrier. `block` is the rank of the cluster's block that contains the barrier, or kOwnBlock.
  void (*barrier_init)(uint32_t address, uint32_t arrivals, Place place);
  void (*barrier_arrive)(uint32_t address, uint32_t block, uint32_t expect_bytes, Place place);
  void (*barrier_wait)(uint32_t address, uint32_t parity, Place place);
  // st.async: stores into shared memory of block `block` of the cluster and reports the bytes to an mbarrier there.
  void (*store_async)(uint32_t to, uint32_t block, const void* from, uint32_t bytes, uint32_t barrier, Place place);

  // fence.mbarrier_init, fence.proxy.async.
  void (*fence_barrier_init)();
  void (*fence_async)();

  // Copies shared memory to another block of the cluster. An mbarrier in that block counts the bytes.
  void (*copy_shared)(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier, uint32_t block, Place place);

  // TMA loads and stores of a box of a tensor map. `blocks` is the mask of the cluster's blocks that receive the box; 0
  // means the calling block.
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
  uint32_t lanes;         // of a warp: 32, or 64 on some AMD GPUs
  bool reports_accesses;  // every access to global memory, so that races can be found
  ThreadInfo** thread;    // the running thread
  const Api** api;
};

struct KernelInfo {
  void (*run)(void** arguments);  // executes the kernel for the running thread
  const uint32_t* argument_bytes;
  uint32_t arguments;
  uint32_t max_threads;  // most threads per block; 0 if unspecified
  Dim cluster;           // 0 if unspecified
};

}  // namespace heddle::emulated
