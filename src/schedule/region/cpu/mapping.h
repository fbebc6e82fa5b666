#pragma once

#include "schedule/region/region.h"

namespace heddle::schedule {

// The parallel structure of a CPU kernel.
struct Mapping : RegionMapping {
  bool packed = false;  // `transposed` is short and not blocked; a vector holds several rows along it
  // The variable that selects the row, if the kernel gathers whole rows that are contiguous along the vector variable.
  // The positions and weights of a block of rows are then computed together.
  std::optional<VarId> rows;
  int64_t tasks = 1;
};

// True for floating-point types below 16 bits. Their elements are converted one by one, so they are not moved as whole
// vectors.
inline bool is_narrow_float(DType dtype) {
  return is_float(dtype) && size_of(dtype) < 2;
}

MapResult map_kernel(KernelExprs& exprs, const ir::Graph& graph, const Target& target, const StitchOptions& options,
                     const Frontier& frontier);

// Returns the content of a kernel input if it is known at compile time, else null.
using Constants = std::function<const Tensor*(ir::ValueId)>;

// Builds the stages of a mapped kernel.
std::shared_ptr<CpuStitchDesc> build_stages(KernelExprs& exprs, const ir::Graph& graph, const Mapping& mapping,
                                            const Target& target, const StitchOptions& options,
                                            const Constants& constants);

}  // namespace heddle::schedule
