#pragma once

#include <optional>

#include "schedule/region/cut.h"

namespace heddle::schedule {

// Sums over columns of (x - centre)^2 beside sums of x: the statistics of batch normalisation. Made in parts (Chan,
// Golub and LeVeque 1979) both need one pass over x.
struct Deviation {
  ir::ValueId value;                 // the sum of squares
  ir::ValueId x;                     // [rows..., kept...]
  ir::ValueId centre;                // over the kept dimensions
  ir::ValueId sum;                   // of x over the same rows; made before the others
  std::optional<ir::ValueId> drift;  // the sum of x - centre over the same rows
  int64_t rows;
  size_t reduced;  // dimensions that make up the rows
};
std::optional<Deviation> find_deviation(const ir::Graph& graph, ir::NodeId id);

// Replaces the sums by sums over `parts` runs of rows, each around its own mean, and sums of those. `parts` divides
// the rows.
void split_deviation(LocalGraph& local, const Deviation& deviation, int64_t parts);

// Splits those of large columns that do not stay on the chip.
void split_statistics(LocalGraph& local, const CudaTarget& cuda);

}  // namespace heddle::schedule
