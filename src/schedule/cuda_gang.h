#pragma once

#include <cstdint>
#include <optional>

#include "target/target.h"

namespace heddle::schedule {

// Blocks of a cluster that share an iteration, so that what one block could not keep stays on the chip and more
// multiprocessors have work.
struct CudaGang {
  int blocks = 1, threads = 512;
  int64_t columns = 0;  // of a gang that reduces columns: how many
  int resident = 1;     // blocks that each multiprocessor has at once
};

// For rows of `steps` vectors, each thread's part in registers or shared memory; `bytes` that a row moves; `again`: it
// is gone over more than once. nullopt: a block does as well. `least`: blocks to choose from; 2: a cluster wherever
// there can be one.
std::optional<CudaGang> gang_for_rows(const CudaTarget& target, int64_t rows, int64_t steps, int vector, double bytes,
                                      bool again = true, int least = 1);

// For reductions down `rows` elements of each of `columns` neighbouring columns, `others` times, whose elements are
// needed again afterwards; `bytes` of one in memory. nullopt: they do not stay on the chip, or too few blocks have
// work.
std::optional<CudaGang> gang_for_columns(const CudaTarget& target, int64_t rows, int64_t columns, int64_t others,
                                         int64_t bytes);

// For reductions down columns whose results alone are wanted, by clusters that take `segment` neighbouring columns in
// vectors of `vector`. nullopt: they do not divide the columns, or a vector's threads do not divide a block.
std::optional<CudaGang> gang_for_sums(const CudaTarget& target, int64_t rows, int64_t columns, int64_t others,
                                      int64_t segment, int vector);

// Of gang_for_columns() by all blocks of the device at once, one on each multiprocessor, with barriers across the grid;
// `vector`: elements of an access. nullopt: it does not stay on the chip, or is too little to spread.
std::optional<CudaGang> grid_for_columns(const CudaTarget& target, int64_t rows, int64_t columns, int vector,
                                         int64_t bytes);

}  // namespace heddle::schedule
