#pragma once

#include "schedule/region/region.h"

namespace heddle::schedule {

// The parallel structure of a kernel for a CPU.
struct Mapping : RegionMapping {
  bool packed = false;  // `transposed` is short and not blocked: several of its rows lie in a vector
  // Where whole rows are gathered, along the vector variable: the variable that rows follow each other along. A block
  // of them has its positions and weights computed together.
  std::optional<VarId> rows;
  int64_t tasks = 1;
};

// Floats below 16 bits are converted element by element: no whole vectors of them are moved.
inline bool is_narrow_float(DType dtype) {
  return is_float(dtype) && size_of(dtype) < 2;
}

MapResult map_kernel(KernelExprs& exprs, const ir::Graph& graph, const Target& target, const StitchOptions& options,
                     const Frontier& frontier);

// What is known of an input of the kernel when it is compiled; null: nothing.
using Constants = std::function<const Tensor*(ir::ValueId)>;

// Lays out the stages of a mapped kernel.
std::shared_ptr<StitchDesc> build_stages(KernelExprs& exprs, const ir::Graph& graph, const Mapping& mapping,
                                         const Target& target, const StitchOptions& options,
                                         const Constants& constants);

}  // namespace heddle::schedule
