#pragma once

#include <optional>

#include "schedule/region/cut.h"

namespace heddle::schedule {

// Batch normalisation statistics: a sum of (x - centre)^2 and a sum of x for each column. Computed in parts (Chan,
// Golub and LeVeque 1979), both need only one pass over x.
struct Deviation {
  ir::ValueId value;                 // the sum of squares
  ir::ValueId x;                     // [rows..., kept...]
  ir::ValueId centre;                // over the kept dimensions
  ir::ValueId sum;                   // of x over the same rows; computed before the others
  std::optional<ir::ValueId> drift;  // the sum of x - centre over the same rows
  int64_t rows;
  size_t reduced;  // dimensions that make up the rows
};
std::optional<Deviation> find_deviation(const ir::Graph& graph, ir::NodeId id);

// Splits the rows into `parts` runs, sums each run around its own mean, and combines these sums. `parts` divides the
// number of rows.
void split_deviation(LocalGraph& local, const Deviation& deviation, int64_t parts);

// Splits the statistics of large columns that do not stay on the chip.
void split_statistics(LocalGraph& local, const CudaTarget& cuda);

}  // namespace heddle::schedule
