#pragma once

#include <algorithm>
#include <vector>

#include "schedule/kernel_desc.h"
#include "tile/core/shape.h"

namespace heddle::schedule {

// Floors are lower bounds: no run is faster, whatever the caches hold. Data counts once, and only what is read; data
// that a cache can keep from one run to the next counts at that cache's rate. On a CPU, seconds are those of one
// thread.

// Upper bound of the elements of a value that the nodes of a group read: of a table only what is gathered, of a sliced
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

// The most data that caches keep from one run to the next.
double cached_bytes(const Target& target);
// The least time to load or store `bytes` of distinct data.
double least_seconds(double bytes, const Target& target);
// The same for data that comes from memory.
double memory_seconds(double bytes, const Target& target);
// The least time of vector arithmetic that takes `cycles` in units of ir::OpCost.
double arithmetic_seconds(double cycles, const CpuTarget& cpu);

// Pairs of a result and an element of its window, over all results; padding does not count.
double products_inside(const tile::WindowShape& shape);
// The least operations that fold all windows to a sum or a maximum. Sides are folded one after the other, and
// neighbours share what a long side folds, so that each side takes at least one operation a result, whatever its
// length.
double least_folds(const tile::WindowShape& shape);

}  // namespace heddle::schedule
