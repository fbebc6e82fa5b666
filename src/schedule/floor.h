#pragma once

#include <algorithm>
#include <vector>

#include "schedule/kernel_desc.h"
#include "tile/core/shape.h"

namespace heddle::schedule {

// Floors are lower bounds: no run is faster, whatever the caches hold. Only data that is read counts, and only once.
// Data that a cache can keep between runs counts at that cache's rate. On a CPU, seconds are those of one thread.

// Upper bound of the number of elements of a value that a group reads: of a table only the gathered ones, of a sliced
// value only the slices.
double elements_read(const ir::Graph& graph, const ir::Group& group, ir::ValueId value);

// Bytes of each operand that a kernel of a group reads or writes; workspaces count 0.
std::vector<double> operand_traffic(const ir::Graph& graph, const ir::Group& group, const ScheduledKernel& kernel);
double traffic(const ir::Graph& graph, const ir::Group& group, const ScheduledKernel& kernel);

// Peak rates of the memory and caches of a kind of target.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual double cached_bytes(const Target& target) const = 0;
  virtual double memory_seconds(double bytes, const Target& target) const = 0;
  virtual double least_seconds(double bytes, const Target& target) const = 0;

 protected:
  // A cache may already hold the data when a kernel begins, and still hold the results when it ends.
  static double beyond(double bytes, double cache) { return std::max(0.0, bytes - 2 * cache); }
};

const Memory& cpu_memory();
const Memory& cuda_memory();
const Memory& memory_of(const Target& target);  // in backend.cc

// The largest amount of data that caches keep between runs.
double cached_bytes(const Target& target);
// The least time to load or store `bytes` of distinct data.
double least_seconds(double bytes, const Target& target);
// The least time to load or store `bytes` of data that comes from memory.
double memory_seconds(double bytes, const Target& target);
// The least time of vector arithmetic of `cycles` cycles, in units of ir::OpCost.
double arithmetic_seconds(double cycles, const CpuTarget& cpu);

// Number of pairs of a result and an element of its window, over all results, without padding.
double products_inside(const tile::WindowShape& shape);
// The least number of operations that reduce all windows to a sum or a maximum. Dimensions are reduced one after the
// other, and neighbouring windows share partial results along a long one, so each dimension costs at least one
// operation per result, whatever its length.
double least_folds(const tile::WindowShape& shape);

}  // namespace heddle::schedule
