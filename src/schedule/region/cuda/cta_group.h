#pragma once

#include <cstdint>
#include <optional>

#include "target/target.h"

namespace heddle::schedule {

// Blocks that share an iteration: a cluster, or blocks of a grid that runs at once. Together they keep data on the chip
// that one block could not, and more SMs have work.
struct CtaGroup {
  int blocks = 1, threads = 512;
  int64_t columns = 0;        // of a CTA group that reduces columns: their number
  int min_blocks_per_sm = 1;  // blocks that each SM has at once
  bool whole_grid = false;
};

// For rows of `steps` vectors of which each thread keeps its part in registers or shared memory. `bytes`: moved per
// row. `again`: a row is swept more than once. `least`: the fewest blocks to consider; 2 takes a cluster if there can
// be one. nullopt: a single block is as fast.
std::optional<CtaGroup> cta_group_for_rows(const CudaTarget& target, int64_t rows, int64_t steps, int vector,
                                           double bytes, bool again = true, int least = 1);

// For `others` sets of `columns` neighbouring columns, each reduced over `rows` elements that are needed again
// afterwards. `bytes` of an element in memory, `vector` elements in an access. nullopt: the elements do not stay on the
// chip, or too few blocks have work.
std::optional<CtaGroup> cta_group_for_columns(const CudaTarget& target, int64_t rows, int64_t columns, int64_t others,
                                              int vector, int64_t bytes);

// For reductions down columns of which only the results are needed, by clusters that take `segment` neighbouring
// columns in vectors of `vector`. nullopt: segments do not divide the columns, or a vector's threads do not divide a
// block.
std::optional<CtaGroup> cta_group_for_sums(const CudaTarget& target, int64_t rows, int64_t columns, int64_t others,
                                           int64_t segment, int vector);

}  // namespace heddle::schedule
