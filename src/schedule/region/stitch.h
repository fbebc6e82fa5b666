#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/expr/expr.h"
#include "schedule/kernel_desc.h"

namespace heddle::schedule {

std::string_view to_string(Scheme scheme);

// One dimension of the grid, in blocks. An iteration of the grid fixes the variable (block = 1), or the loops of its
// stages cover the range [k * block, min((k + 1) * block, extent)).
struct GridDim {
  VarId var;
  int64_t block = 1;
  VarId start = 0;  // block > 1: a variable that holds k * block
};

// The dimension that leaves a variable in blocks; null: there is none.
const GridDim* blocked(const std::vector<GridDim>& grid, VarId v);

struct Scratch {
  DType dtype;  // a compute dtype
  int64_t elements;
};

enum class Combine : uint8_t { kSum, kProd, kMax, kMin, kAny, kAll, kArgMax, kArgMin };
std::string_view to_string(Combine combine);
inline bool is_arg(Combine c) {
  return c == Combine::kArgMax || c == Combine::kArgMin;
}

// A running result of a stage. If the stage keeps no variable, the final value is a local. Otherwise it lies in
// `scratch`, at position `at` of the kept variables.
struct Reduction {
  Combine combine;
  DType dtype;  // of the values; the result of an arg reduction is i64
  uint32_t local = 0;
  std::optional<uint32_t> scratch;          // buffer id
  std::optional<uint32_t> position_buffer;  // arg reductions with kept variables: the i64 result
  std::optional<uint32_t> error_buffer;     // vertical sums of floats: the rounding error so far
  Index at;
  bool last = false;            // arg reductions: the last among equals wins
  bool sums_long_sums = false;  // sums compensated sums, so every addition is compensated
  std::string comment;
};

struct Store {
  uint32_t buffer;
  DType dtype;  // as stored
  Index at;
  ExprId value;
  bool stream = false;  // past the caches: the buffer is too large to stay there until it is read
};

// A sweep over a range of each loop. If the guard of a padding or concatenation changes within a vector, the stage is
// cut into several pieces, so that the guard is constant in each.
struct Piece {
  std::vector<Range> ranges;      // inclusive, one per loop of the stage
  std::vector<ExprId> values;     // one per reduction
  std::vector<ExprId> positions;  // one per reduction, for arg reductions: i32 or i64
  std::vector<Store> stores;
};

// A load with unit stride along a loop other than the vector loop. Blocks of it are transposed into scratch first.
struct TransposedLoad {
  uint32_t from;   // operand
  DType dtype;     // as stored
  Index at;        // of the block's first element
  int64_t stride;  // along the vector variable; along `along` it is 1
  VarId along;
  uint32_t scratch;  // buffer id, [block of along][block of vector variable]
};

// A store with unit stride along a short loop other than the vector loop. The stage fills scratch, which is then
// transposed into the buffer.
struct TransposedStore {
  uint32_t to;     // operand
  DType dtype;     // as stored
  Index at;        // of the block's first element
  int64_t stride;  // along the vector variable; along `along` it is 1
  VarId along;
  uint32_t scratch;  // buffer id, [along][block of vector variable]
  bool stream;
};

// A prefetch of data that the next iteration of the grid reads, issued while this iteration computes.
struct Prefetch {
  uint32_t from;  // operand
  Index at;       // the stage's index one iteration later; may lie past the end
  bool near;      // into L1, else L2
};

// One loop nest within an iteration of the grid.
struct Stage {
  std::vector<VarId> loops;  // outermost first
  size_t kept = 0;           // the first `kept` loops lie outside the reductions
  bool vector = false;       // the last loop runs over vectors
  bool vertical = false;     // the vector loop is not reduced: running results lie in scratch, one per lane
  bool held = false;         // vertical with short reduced loops, which are innermost: results stay in registers
  int64_t together = 1;      // vertical: steps of the innermost reduced loop combined before they update results
  bool packed = false;       // rows of `along` in transposed loads and stores are short, whole and not blocked
  std::vector<TransposedLoad> transposed;
  std::vector<TransposedStore> transposed_stores;
  std::vector<Prefetch> prefetches;  // in every step of the vector loop
  struct Scan {
    bool exclusive, reverse;
  };
  std::optional<Scan> scan;  // each step stores the running result (local `reductions[0].local` in the stores)
  std::vector<Reduction> reductions;
  std::vector<Piece> pieces;
};

// The part of a description that kernels over memory-bound nodes have on all targets: a grid of independent iterations.
struct RegionDesc {
  ExprPool pool;
  std::vector<GridDim> grid;
  std::vector<Scratch> scratch;  // buffer ids follow those of the operands
  std::vector<SchemeChoice> schemes;
  std::string title;  // "reduce max, exp, ... of Softmax"; no names of the model: layers share kernels

  int64_t blocks_of(const GridDim& dim) const { return (pool.indices.extent(dim.var) + dim.block - 1) / dim.block; }
  int64_t iterations() const;
  const GridDim* blocked(VarId v) const { return schedule::blocked(grid, v); }
  int64_t extent(VarId v) const;  // of a loop within an iteration
};

// A kernel for a CPU: each iteration is a sequence of stages.
struct CpuStitchDesc : RegionDesc {
  std::vector<Stage> stages;
};

ScheduledGroup schedule_stitch(const ir::Graph& graph, const ir::Group& group, const Target& target,
                               const StitchOptions& options = {});

}  // namespace heddle::schedule
