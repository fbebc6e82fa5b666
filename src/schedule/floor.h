#pragma once

#include <algorithm>
#include <vector>

#include "schedule/kernel_desc.h"
#include "tile/core/shape.h"

namespace heddle::schedule {

// Floors are lower bounds of times: no run is faster, whatever the caches contain. Only the parts of operands that are
// accessed count, and only once. Data that a cache can keep between runs counts at that cache's rate. On a CPU, seconds
// are those of one thread.

// Returns an upper bound of the number of elements of a value that a group reads. Of a table, only the gathered
// elements count; of a sliced value, only the slices.
double elements_read(const ir::Graph& graph, const ir::Group& group, ir::ValueId value);

// operand_traffic() returns the bytes of each operand that a kernel of a group reads or writes; workspaces count as 0.
// traffic() returns the sum over all operands.
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
  // Returns how many of `bytes` bytes must move between the cache and memory. Up to `cache` bytes of data may be in the
  // cache already when a kernel begins, and up to `cache` bytes of results may still be there when it ends.
  static double beyond(double bytes, double cache) { return std::max(0.0, bytes - 2 * cache); }
};

const Memory& cpu_memory();
const Memory& gpu_memory();
const Memory& memory_of(const Target& target);  // in backend.cc

// Returns the largest number of bytes that caches can keep between runs.
double cached_bytes(const Target& target);
// Returns the least time, in seconds, to load or store `bytes` bytes of distinct data.
double least_seconds(double bytes, const Target& target);
// Returns the least time, in seconds, to load or store `bytes` bytes of data that are not in a cache.
double memory_seconds(double bytes, const Target& target);
// Returns the least time, in seconds, of vector arithmetic that costs `cycles` (in units of ir::OpCost).
double arithmetic_seconds(double cycles, const CpuTarget& cpu);

// Returns the number of pairs of a result and an element of its window, over all results. Padding does not count.
double products_inside(const tile::WindowShape& shape);
// Returns the least number of operations that reduce all windows to a sum or a maximum. Dimensions are reduced one
// after another, and neighbouring windows share partial results along a long dimension. So each dimension costs at
// least one operation per result, whatever its length.
double least_folds(const tile::WindowShape& shape);

}  // namespace heddle::schedule
