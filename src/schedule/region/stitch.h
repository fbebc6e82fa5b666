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

// One dimension of the grid, divided into blocks of `block` values. If block = 1, the variable is constant in each
// iteration of the grid. Otherwise the loops of the iteration's stages cover the range [k * block, min((k + 1) * block,
// extent)).
struct GridDim {
  VarId var;
  int64_t block = 1;
  VarId start = 0;  // if block > 1: a variable that holds k * block
};

// The grid dimension that divides `v` into blocks of more than one value; null if there is none.
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

// A reduction of a stage. If the stage keeps no variable, the result is a local variable. Otherwise the results are in
// `scratch`; position `at` depends on the kept variables.
struct Reduction {
  Combine combine;
  DType dtype;  // of the reduced values; the result of an arg reduction is i64
  uint32_t local = 0;
  std::optional<uint32_t> scratch;          // buffer id
  std::optional<uint32_t> position_buffer;  // arg reductions with kept variables: buffer id of the i64 results
  std::optional<uint32_t> error_buffer;     // vertical sums of floats: buffer id of the rounding errors so far
  Index at;
  bool last = false;            // arg reductions: the last among equals wins
  bool sums_long_sums = false;  // the summands are compensated sums, so every addition is compensated
  std::string comment;
};

struct Store {
  uint32_t buffer;
  DType dtype;  // type in memory
  Index at;
  ExprId value;
  bool stream = false;  // bypass the caches: the buffer is too large to stay cached until it is read
};

// A part of a stage's iteration space: a range of each loop. If a guard of a padding or concatenation changes inside
// the space, the stage is split into pieces, so that the guard is constant in each piece.
struct Piece {
  std::vector<Range> ranges;      // inclusive, one per loop of the stage
  std::vector<ExprId> values;     // one per reduction
  std::vector<ExprId> positions;  // one per reduction, for arg reductions: i32 or i64
  std::vector<Store> stores;
};

// A load with unit stride along a loop other than the vector loop. Blocks of the operand are first transposed into
// scratch.
struct TransposedLoad {
  uint32_t from;   // operand number
  DType dtype;     // type in memory
  Index at;        // index of the block's first element
  int64_t stride;  // along the vector variable; the stride along `along` is 1
  VarId along;
  uint32_t scratch;  // buffer id, [block of along][block of vector variable]
};

// A store with unit stride along a short loop other than the vector loop. The stage writes the values to scratch, and
// then transposes the scratch into the buffer.
struct TransposedStore {
  uint32_t to;     // operand number
  DType dtype;     // type in memory
  Index at;        // index of the block's first element
  int64_t stride;  // along the vector variable; the stride along `along` is 1
  VarId along;
  uint32_t scratch;  // buffer id, [along][block of vector variable]
  bool stream;
};

// A prefetch of data for the next iteration of the grid, issued during the current iteration.
struct Prefetch {
  uint32_t from;  // operand number
  Index at;       // the index of the next iteration; may be past the end
  bool near;      // true: into L1; false: into L2
};

// One loop nest within an iteration of the grid.
struct Stage {
  std::vector<VarId> loops;  // outermost first
  size_t kept = 0;           // the first `kept` loops are outside the reductions
  bool vector = false;       // the last loop is vectorised
  bool vertical = false;     // the vector loop is not reduced: partial results are in scratch, one per lane
  bool held = false;         // vertical, with short innermost reduced loops: partial results stay in registers
  int64_t together = 1;      // vertical: steps of the innermost reduced loop to combine before an update
  bool packed = false;       // transposed loads and stores: rows along `along` are short and not split into blocks
  std::vector<TransposedLoad> transposed;
  std::vector<TransposedStore> transposed_stores;
  std::vector<Prefetch> prefetches;  // issued in every step of the vector loop
  struct Scan {
    bool exclusive, reverse;
  };
  std::optional<Scan> scan;  // each step stores the running result (in stores: the local `reductions[0].local`)
  std::vector<Reduction> reductions;
  std::vector<Piece> pieces;
};

// The part of a kernel's description that is the same for all targets. The kernel computes memory-bound nodes in a grid
// of independent iterations.
struct RegionDesc {
  ExprPool pool;
  std::vector<GridDim> grid;
  std::vector<Scratch> scratch;  // buffer ids follow those of the operands
  std::vector<SchemeChoice> schemes;
  std::string title;  // "reduce max, exp, ... of Softmax"; without names of the model, so that layers can share kernels

  int64_t blocks_of(const GridDim& dim) const { return (pool.indices.extent(dim.var) + dim.block - 1) / dim.block; }
  int64_t iterations() const;
  const GridDim* blocked(VarId v) const { return schedule::blocked(grid, v); }
  int64_t extent(VarId v) const;  // of a loop within an iteration
};

// A kernel for a CPU. Each iteration is a sequence of stages.
struct CpuStitchDesc : RegionDesc {
  std::vector<Stage> stages;
};

ScheduledGroup schedule_stitch(const ir::Graph& graph, const ir::Group& group, const Target& target,
                               const StitchOptions& options = {});

}  // namespace heddle::schedule
