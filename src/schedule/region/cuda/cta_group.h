#pragma once

#include <cstdint>
#include <optional>

#include "target/target.h"

namespace heddle::schedule {

// Blocks that share an iteration, so that what one block could not keep stays on the chip and more SMs
// have work: those of a cluster, or of a grid that runs at once.
struct CtaGroup {
  int blocks = 1, threads = 512;
  int64_t columns = 0;        // of a cta_group that reduces columns: how many
  int min_blocks_per_sm = 1;  // blocks that each SM has at once
  bool whole_grid = false;
};

// For rows of `steps` vectors, each thread's part in registers or shared memory; `bytes` that a row moves; `again`: it
// is gone over more than once. nullopt: a block does as well. `least`: blocks to choose from; 2: a cluster wherever
// there can be one.
std::optional<CtaGroup> cta_group_for_rows(const CudaTarget& target, int64_t rows, int64_t steps, int vector,
                                           double bytes, bool again = true, int least = 1);

// For reductions down `rows` elements of each of `columns` neighbouring columns, `others` times, whose elements are
// needed again afterwards; `bytes` of one in memory, `vector` of them in an access. nullopt: they do not stay on the
// chip, or too few blocks have work.
std::optional<CtaGroup> cta_group_for_columns(const CudaTarget& target, int64_t rows, int64_t columns, int64_t others,
                                              int vector, int64_t bytes);

// For reductions down columns whose results alone are wanted, by clusters that take `segment` neighbouring columns in
// vectors of `vector`. nullopt: they do not divide the columns, or a vector's threads do not divide a block.
std::optional<CtaGroup> cta_group_for_sums(const CudaTarget& target, int64_t rows, int64_t columns, int64_t others,
                                           int64_t segment, int vector);

}  // namespace heddle::schedule
