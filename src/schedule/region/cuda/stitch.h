#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// Maps the points of a pass to the threads of a thread group (team). The first `outer_loops` loops form rows. The other
// loops form columns, in steps of `vector` elements along the last loop.
//
// By rows (`by_columns` is false): a subgroup of `group` neighbouring threads computes one row at a time, and its
// threads take the columns of the row cyclically. Without outer loops there is one row, and the subgroup is the whole
// team: neighbouring threads take neighbouring vectors.
//
// By columns: a thread always computes the same column and every (active / columns)-th row. If there are more columns
// than threads, a thread computes all rows of several columns.
struct ThreadLayout {
  std::vector<VarId> loops;  // outermost first
  size_t outer_loops = 0;
  bool by_columns = false;
  // True if each block of a CTA group (or, in a single block, each warp) redundantly computes all points.
  bool replicated = false;
  int vector = 1;
  int group = 1;
  int active = 1;  // active threads: the team, or a multiple of the number of columns
  bool operator==(const ThreadLayout&) const = default;
};

struct CudaReduction {
  Combine combine;
  DType dtype;  // of the reduced values; the result of an arg reduction is i64
  ExprId value = 0, position = 0;
  uint32_t local = 0;  // Expr::id of the result, unless the result is in scratch
  enum class Over : uint8_t {
    kTeam,     // over all points of the pass: every thread gets the result
    kGroup,    // over a row's columns: the results of the rows go to scratch
    kColumn,   // over a column's rows: the results of the columns go to scratch
    kThread,   // over the rows of a thread's only column: the result stays in registers
    kCarried,  // for each point: over the iterations of the serial loop, then over the teams of the block
  };
  Over over = Over::kTeam;
  std::optional<uint32_t> scratch;  // buffer id
  Index at;
  // For a sum over `count` values: `squares` is the sum of squared deviations from the mean, computed in the same pass.
  // `drift` is the sum of deviations from the rounded mean.
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

// A value that a thread keeps for each of its points, so that later passes with the same layout can read it.
struct CachedValue {
  ExprId value;
  uint32_t local;
  DType dtype;
  bool shared = false;  // in a shared-memory buffer, not in registers
  bool stored = false;  // a load kept in registers, in the type of the memory
  bool ahead = false;   // of CudaStitchDesc::ahead: one copy for each turn
  uint32_t buffer = 0;  // if shared: the id of the buffer, which has a slot for each step of each thread; if stored: of
                        // the operand
};

// One pass over points.
struct CudaStage {
  ThreadLayout layout;
  std::vector<CudaReduction> reductions;
  std::vector<Store> stores;
  std::vector<CachedValue> cached;
  std::vector<TransposedLoad> transposed;
  std::optional<Stage::Scan> scan;
  bool unrolled = false;    // few steps, fully unrolled: kept values are in registers
  bool sync = false;        // needs a barrier first, since it reads values that other threads have written
  bool async_copy = false;  // only starts the copy of a kept operand to shared memory
  bool wait_async = false;  // first waits for such copies, since this is the first pass that reads one

  std::vector<ExprId> values() const;  // the values of the reductions
  std::vector<ExprId> roots() const;   // values(), and the values that are stored or kept
};

// The number of threads of a kernel, and the thread groups (teams) that compute its iterations.
struct CudaShape {
  int lanes = 32;      // threads per warp
  int team = 32;       // threads per team: a power of two up to `lanes`, or the block, or all blocks of a CTA group
  int threads = 256;   // per block
  int64_t blocks = 1;  // launched blocks; each may compute several iterations of the grid
  int cta_group = 1;   // blocks that form one team: a cluster, unless `whole_grid`
  bool whole_grid = false;      // the blocks of a team are those of a cooperative grid
  int turns = 1;                // iterations (of the grid, or of the serial loop) that a team computes at a time, to
                                // have more loads in flight
  std::optional<VarId> serial;  // a block's teams share one iteration and divide the values of this loop variable
  // If set, the serial loop ends before serial * parts + part reaches `rows`.
  struct SerialEnd {
    VarId part;
    int64_t parts, rows;
  };
  std::optional<SerialEnd> serial_end;
  int min_blocks_per_sm = 0;  // lower bound of resident blocks per SM, which limits registers; 0: no bound

  int teams() const { return std::max(1, threads / team); }  // teams per block
};

// A GPU kernel over memory-bound nodes. A team of threads computes each iteration in a sequence of passes. Scratch is
// shared memory of the team.
struct CudaStitchDesc : RegionDesc, CudaShape {
  std::vector<CudaStage> stages;
  std::vector<CudaStage> before;  // passes before the serial loop; all its iterations use their kept values
  // Early loads (CachedValue::stored) for the first stage that reduces. If a team computes several iterations at a time
  // (`turns`), the loads of all of them are issued before the first one computes. In a serial loop, the loads of the
  // next `turns` iterations are issued while the current ones compute. If the last step of a row is partial, its loads
  // are issued together with the others.
  std::vector<CudaStage> ahead;
  std::vector<CudaStage> after;    // passes after the serial loop, by the whole block as one team
  std::set<uint32_t> evict_first;  // operands that are read once and not needed later
  std::set<uint32_t> l1_resident;  // operands that each iteration of the serial loop reads again, from the L1
  bool wide_index = false;         // some index does not fit in 32 bits

  // True if the kernel takes its iteration count as an argument and checks each iteration number against it. Kernels
  // that differ only in that count share one source text. False if the grid has exactly as many teams as iterations.
  bool counts_iterations() const;
  // The number of iterations that a block of the launch, or a CTA group, computes at a time.
  int64_t iterations_at_once() const { return serial ? 1 : teams() * turns; }
  // True if a block, or a CTA group, computes more than iterations_at_once() iterations.
  bool walks_grid() const { return blocks / cta_group * iterations_at_once() < iterations(); }

  int64_t rows(const ThreadLayout& layout) const;
  int64_t columns(const ThreadLayout& layout) const;  // in steps of `vector` elements
  // The outer and inner steps of each thread.
  int64_t outer_steps(const ThreadLayout& layout) const;
  int64_t inner_steps(const ThreadLayout& layout) const;
  // The number of inner steps in which every thread has a point.
  int64_t full_steps(const ThreadLayout& layout) const;
};

}  // namespace heddle::schedule
