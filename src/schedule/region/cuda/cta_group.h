#pragma once

#include <cstdint>
#include <optional>

#include "target/target.h"

namespace heddle::schedule {

// Blocks that share the work of one iteration: a cluster, or all blocks of a grid that are resident at the same time.
// Together they can keep more data on the chip than a single block, and more SMs have work.
struct CtaGroup {
  int blocks = 1, threads = 512;
  int64_t columns = 0;        // columns per CTA group, if it reduces columns
  int min_blocks_per_sm = 1;  // the minimum number of resident blocks per SM
  bool whole_grid = false;
};

// Chooses the cluster for rows of `steps` vectors. Each thread keeps its part of a row in registers or shared memory.
// `bytes`: the bytes moved per row. `again`: a row is read more than once. `least`: the smallest number of blocks to
// consider. With 2, a cluster is used wherever one is possible. Returns nullopt if a single block is as fast, or if no
// cluster is possible.
std::optional<CtaGroup> cta_group_for_rows(const GpuTarget& target, int64_t rows, int64_t steps, int vector,
                                           double bytes, bool again = true, int least = 1);

// The sizes of what is kept for an element of a column: of the widest operand, and of all operands together.
struct ElementBytes {
  int64_t widest, together;
};

// Chooses the CTA group for reductions of columns whose elements are needed again afterwards. There are `others` sets
// of `columns` neighbouring columns with `rows` elements each. `vector`: the number of elements per access. Returns
// nullopt if the elements do not fit on the chip, or if too few blocks would have work.
std::optional<CtaGroup> cta_group_for_columns(const GpuTarget& target, int64_t rows, int64_t columns, int64_t others,
                                              int vector, ElementBytes bytes);

// Chooses the cluster for reductions of columns of which only the results are needed. A cluster reduces `segment`
// neighbouring columns, in vectors of `vector` elements. Returns nullopt if `segment` does not divide `columns`, if
// `vector` does not divide `segment`, if each block would have too little work, or if a block would need too many
// threads. (Each thread keeps the same columns for all rows.)
std::optional<CtaGroup> cta_group_for_sums(const GpuTarget& target, int64_t rows, int64_t columns, int64_t others,
                                           int64_t segment, int vector);

}  // namespace heddle::schedule
