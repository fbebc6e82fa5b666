#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// Maps the points of a sweep to the threads of a team. The first `outer_loops` loops form rows. The others form
// columns, in steps of `vector` elements along the last loop.
//
// By rows: a group of `group` neighbouring threads takes a row, and its threads take the row's columns in turn. With no
// outer loops there is one row and the group is the team: neighbouring threads take neighbouring vectors. By columns: a
// thread stays with its column and takes every (active / columns)-th row. If there are more columns than threads, it
// takes all rows of several columns.
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
  uint32_t local = 0;  // the result's name in expressions, unless it lies in scratch
  enum class Over : uint8_t {
    kTeam,     // all points of the sweep: every thread gets the result
    kGroup,    // a row's columns: the result of each row goes to scratch
    kColumn,   // the rows of a column: the results go to scratch
    kThread,   // the rows of a thread's only column: the result stays in its registers
    kCarried,  // each point over the turns of the serial loop, then over the teams of the block
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
  bool compensated = false;  // a long sum that compensates for rounding
  std::string comment;
};

// A value that a thread keeps for each of its points, for later sweeps with the same layout.
struct CachedValue {
  ExprId value;
  uint32_t local;
  DType dtype;
  bool shared = false;  // in shared memory of its own, not in registers
  bool stored = false;  // a load kept in registers, in the type that memory has
  uint32_t buffer = 0;  // if shared: a slot for each step of each thread
};

// One sweep over points.
struct CudaStage {
  ThreadLayout layout;
  std::vector<CudaReduction> reductions;
  std::vector<Store> stores;
  std::vector<CachedValue> cached;
  std::vector<TransposedLoad> transposed;
  std::optional<Stage::Scan> scan;
  bool unrolled = false;    // few steps, fully unrolled: kept values lie in registers
  bool sync = false;        // reads what other threads wrote before, so needs a barrier
  bool async_copy = false;  // only starts the copy of one kept operand to shared memory
  bool wait_async = false;  // the first sweep that reads such a copy: waits for it

  std::vector<ExprId> values() const;  // of the reductions
  std::vector<ExprId> roots() const;   // and of what it stores and keeps
};

// The number of threads of a kernel, and the teams of threads that share an iteration.
struct CudaShape {
  int team = 32;                // threads: a power of two up to 32, or the block, or all blocks of a cta_group
  int threads = 256;            // of a block
  int64_t blocks = 1;           // launched; they walk over the grid in turns
  int cta_group = 1;            // blocks that form one team: a cluster, unless
  bool whole_grid = false;      // they are blocks of a grid that runs at once
  int turns = 1;                // iterations that a team does at a time, for more loads in flight
  std::optional<VarId> serial;  // the teams of a block share an iteration and take the values of this variable in turn
  int min_blocks_per_sm = 0;    // blocks that an SM must have registers for; 0: no bound

  int teams() const { return std::max(1, threads / team); }  // of a block
};

// A kernel over memory-bound nodes for a GPU: each iteration is done by a team of threads in a sequence of sweeps.
// Scratch is shared memory of a team.
struct CudaStitchDesc : RegionDesc, CudaShape {
  std::vector<CudaStage> stages;
  std::vector<CudaStage> before;  // before the serial loop: values that all its turns keep
  // `stored` loads for the first stage that reduces. The loads of all turns come before the turns. In a serial loop, a
  // turn's loads are issued while the previous turn is computed. In a row, the partial step's loads are issued with the
  // others.
  std::vector<CudaStage> ahead;
  std::vector<CudaStage> after;    // after the serial loop, by the block as one team
  std::set<uint32_t> evict_first;  // operands that are read once and not needed later
  std::set<uint32_t> l1_resident;  // operands that each turn of the serial loop reads again, from the L1
  bool wide_index = false;         // some index does not fit 32 bits

  // True if the kernel takes its iteration count as an argument and compares iterations with it; kernels that differ
  // only in the count share one text. Otherwise the grid has as many teams as there are iterations.
  bool counts_iterations() const;
  // The iterations that a block of the launch, or a CTA group, computes at a time.
  int64_t iterations_at_once() const { return (serial ? 1 : teams()) * turns; }
  // True if a block, or a CTA group, computes more iterations than that.
  bool walks_grid() const { return blocks / cta_group * iterations_at_once() < iterations(); }

  int64_t rows(const ThreadLayout& layout) const;
  int64_t columns(const ThreadLayout& layout) const;  // in steps of `vector`
  // The outer and inner steps of one thread.
  int64_t outer_steps(const ThreadLayout& layout) const;
  int64_t inner_steps(const ThreadLayout& layout) const;
  // The inner steps in which every thread has a point.
  int64_t full_steps(const ThreadLayout& layout) const;
};

}  // namespace heddle::schedule
