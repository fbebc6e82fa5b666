#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// How the points of a sweep lie on the threads of a team. The loops are cut in two: the first `lead` of them make rows,
// the others, in steps of `vector` elements along the last, make columns.
//
// By rows: groups of `group` neighbouring threads take a row each, the threads of a group its columns in turn. With no
// lead loops there is one row and the group is the team: neighbouring threads take neighbouring vectors.
// By columns: a thread stays with its column and takes every (active / columns)-th row; where there are more columns
// than threads it takes several columns, each with all rows.
struct ThreadLayout {
  std::vector<VarId> loops;  // outermost first
  size_t outer_loops = 0;
  bool by_columns = false;
  // Each block of a cta_group, or else each warp of a block, walks over all points by itself.
  bool replicated = false;
  int vector = 1;
  int group = 1;
  int active = 1;  // threads that take part: the team, or a multiple of the number of columns
  bool operator==(const ThreadLayout&) const = default;
};

struct CudaReduction {
  Combine combine;
  DType dtype;  // of the values; the result of an arg reduction is i64
  ExprId value = 0, position = 0;
  uint32_t local = 0;  // the result's name in expressions, where it does not lie in scratch
  enum class Over : uint8_t {
    kTeam,     // all points of the sweep: every thread knows the result
    kGroup,    // a row's columns: the result of each row goes to scratch
    kColumn,   // the rows of a column: the results go to scratch
    kThread,   // the rows of the one column that a thread has: the result stays in its registers
    kCarried,  // the turns of the serial loop, point by point, and then the teams of the block
  };
  Over over = Over::kTeam;
  std::optional<uint32_t> scratch;  // buffer id
  Index at;
  // For a sum: the sum of squared deviations of its `count` values from their mean, computed in the same pass; with a
  // drift, also the sum of their deviations from the rounded mean.
  struct Result {
    uint32_t local = 0;
    std::optional<uint32_t> scratch;
    Index at;
  };
  struct Squares : Result {
    int64_t count = 0;
    std::optional<Result> drift;
  };
  std::optional<Squares> squares;
  bool last = false;         // arg reductions: the last among equals wins
  bool compensated = false;  // a long sum that keeps what rounding takes
  std::string comment;
};

// A value that a thread keeps for each of its points, for later sweeps that are spread alike.
struct CachedValue {
  ExprId value;
  uint32_t local;
  DType dtype;
  bool shared = false;  // in shared memory of its own, not in registers
  bool stored = false;  // a load that is kept as it lies in memory; in registers
  uint32_t buffer = 0;  // where shared: a slot for each step of each thread
};

// One sweep over points.
struct CudaStage {
  ThreadLayout layout;
  std::vector<CudaReduction> reductions;
  std::vector<Store> stores;
  std::vector<CachedValue> cached;
  std::vector<TransposedLoad> transposed;
  std::optional<Stage::Scan> scan;
  bool unrolled = false;    // few steps, written out: what is kept lies in registers
  bool sync = false;        // needs what other threads wrote before
  bool async_copy = false;  // only has what it keeps, one operand, copied to shared memory, and does not wait for it
  bool wait_async = false;  // for such copies: the first sweep that reads one

  std::vector<ExprId> values() const;  // of the reductions
  std::vector<ExprId> roots() const;   // and of what it stores and keeps
};

// How many threads a kernel has, and who shares an iteration.
struct CudaShape {
  int team = 32;                // threads: a power of two up to 32, or the block, or all blocks of a cta_group
  int threads = 256;            // of a block
  int64_t blocks = 1;           // launched; they walk over the grid in turns
  int cta_group = 1;            // blocks that are one team: a cluster, or
  bool whole_grid = false;      // so many of a grid that runs at once
  int turns = 1;                // iterations that a team does at a time, for more loads in flight
  std::optional<VarId> serial;  // the teams of a block share an iteration and take the values of this variable in turn
  int min_blocks_per_sm = 0;    // blocks that a SM shall have registers for; 0: as it comes

  int teams() const { return std::max(1, threads / team); }  // of a block
};

// A kernel over memory-bound nodes for a GPU: each iteration is done by a team of threads in a sequence of sweeps.
// Scratch is shared memory of a team.
struct CudaStitchDesc : RegionDesc, CudaShape {
  std::vector<CudaStage> stages;
  std::vector<CudaStage> before;  // ahead of the serial loop: what all its turns keep
  // What the first stage that reduces reads, by `stored` loads: those of all turns come before them, those of a turn of
  // the serial loop while the one before it is worked on, those of a row's cut step with those of the others.
  std::vector<CudaStage> ahead;
  std::vector<CudaStage> after;    // when the serial loop has ended, by the block as one team
  std::set<uint32_t> evict_first;  // operands that are read once and that nothing later wants
  std::set<uint32_t> l1_resident;  // operands that each turn of the serial loop reads again, from the L1
  bool wide_index = false;         // some index does not fit 32 bits

  // Whether iterations are compared with their number, which the kernel is told then: kernels that differ in it alone
  // are one. Otherwise the grid has as many teams as there are iterations.
  bool counts_iterations() const;
  // Iterations that a block of the launch, or a CTA group, does at a time.
  int64_t iterations_at_once() const { return (serial ? 1 : teams()) * turns; }
  // Whether each does more than these.
  bool walks_grid() const { return blocks / cta_group * iterations_at_once() < iterations(); }

  int64_t rows(const ThreadLayout& layout) const;
  int64_t columns(const ThreadLayout& layout) const;  // in steps of `vector`
  // Steps of the outer and the inner walk of one thread.
  int64_t outer_steps(const ThreadLayout& layout) const;
  int64_t inner_steps(const ThreadLayout& layout) const;
  // Of the inner walk, those in which every thread has a point.
  int64_t full_steps(const ThreadLayout& layout) const;
};

}  // namespace heddle::schedule
