#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/region/cuda/mapping.h"

// Which variables of a kernel's domain a thread block walks along, and how: serially, in vectors, or through a tile in
// shared memory that transposes.
namespace heddle::schedule {

inline constexpr int64_t kSectorOfMemory = 32;  // bytes that memory moves together
inline constexpr int64_t kTile = 32;            // side of a transposed tile, in elements of 4 bytes

// Returns a variable that some reductions reduce, alone, while all else keeps it. The running results of these
// reductions can stay in registers while the rows go by.
std::optional<VarId> serial_variable(const KernelExprs& exprs, uint64_t parallel);

std::vector<Store> stores_of(const KernelExprs& exprs, const ir::Graph& graph);

// Returns the variable along which most bytes are contiguous, other than `serial`.
std::optional<VarId> vector_variable(const KernelExprs& exprs, const ir::Graph& graph, std::optional<VarId> serial);

// Returns a variable along which loads are contiguous that have a stride along the vector variable.
std::optional<VarId> most_transposed_variable(const KernelExprs& exprs, VarId vector, uint64_t parallel);

// Whether a team can take whole rows along `vector`, one after the other along `serial`, and carry the results of their
// columns: rows are long enough for a warp, and read in the order of their columns.
bool can_carry(const KernelExprs& exprs, VarId serial, VarId vector);

// Returns the extra time of loads and stores that have a stride along `vector`: each element takes a sector of memory.
// Loads that are contiguous along `transposed` go through a tile in shared memory and cost nothing extra.
double scattered_seconds(const KernelExprs& exprs, const ir::Graph& graph, VarId vector,
                         std::optional<VarId> transposed, const GpuTarget& cuda);

}  // namespace heddle::schedule
