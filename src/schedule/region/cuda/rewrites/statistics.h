#pragma once

#include <optional>

#include "schedule/region/cut.h"

namespace heddle::schedule {

// Statistics of a batch normalisation: for each column, a sum of (x - centre)^2 and a sum of x. If they are computed in
// parts (Chan, Golub and LeVeque 1979), the two sums need only one pass over x.
struct Deviation {
  ir::ValueId value;                 // the sum of squares
  ir::ValueId x;                     // [rows..., kept...]
  ir::ValueId centre;                // a tensor over the kept dimensions
  ir::ValueId sum;                   // the sum of x over the same rows; computed before the other values
  std::optional<ir::ValueId> drift;  // the sum of x - centre over the same rows
  int64_t rows;
  size_t reduced;  // number of leading dimensions that make up the rows
};
std::optional<Deviation> find_deviation(const ir::Graph& graph, ir::NodeId id);

// Splits the rows into `parts` ranges of equal length, sums each range around its own mean, and combines the sums.
// `parts` must divide the number of rows.
void split_deviation(LocalGraph& local, const Deviation& deviation, int64_t parts);

// Splits the statistics of large tensors with split_deviation(), so that more blocks compute them. Statistics are not
// split if the kernel keeps the columns in on-chip memory for an output that needs their elements again.
void split_statistics(LocalGraph& local, const GpuTarget& cuda);

}  // namespace heddle::schedule
