#pragma once

#include "schedule/region/cost.h"
#include "schedule/region/kernel_exprs.h"

namespace heddle::schedule {

// The parallel structure of a kernel, before its stages are laid out.
struct Mapping {
  std::vector<GridDim> grid;
  uint64_t fixed = 0;               // variables that one grid iteration fixes
  std::optional<VarId> vector;      // the variable that most accesses walk with unit stride
  std::optional<VarId> transposed;  // a second blocked variable, along which some loads have unit stride
  bool packed = false;              // `transposed` is short and not blocked: several of its rows lie in a vector
  int64_t tasks = 1;
  std::string reason;

  bool is_inner(VarId v) const { return (fixed >> v & 1) == 0; }
};

// Floats below 16 bits are converted element by element: no whole vectors of them are moved.
inline bool is_narrow_float(DType dtype) {
  return is_float(dtype) && size_of(dtype) < 2;
}

// What a set of roots can become. Without a mapping it is no kernel, and `cuts` says which values kernels before it
// have to make (none: the roots do not belong together). `split` names a reduction that had better be done in two
// steps, so that all threads have work; `fold` one down short columns, which had better read `fold_rows` rows as one.
struct Outcome {
  std::optional<Mapping> mapping;
  std::set<ir::ValueId> cuts;
  std::optional<ir::ValueId> split, fold;
  int64_t parts = 0, fold_rows = 0;
  std::string reason;
};

// `frontier` gives, for a reduction, the values in which its result is handed on most cheaply (after the elementwise
// operations on it, before it is broadcast); empty: it is a root, or its consumers are.
Outcome map_kernel(KernelExprs& exprs, const ir::Graph& graph, const Target& target, const StitchOptions& options,
                   const std::function<std::set<ir::ValueId>(ir::ValueId)>& frontier);

// Lays out the stages of a mapped kernel.
std::shared_ptr<StitchDesc> build_stages(KernelExprs& exprs, const ir::Graph& graph, const Mapping& mapping,
                                         const Target& target, const StitchOptions& options);

}  // namespace heddle::schedule
