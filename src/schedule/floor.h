#pragma once

#include <algorithm>
#include <vector>

#include "schedule/kernel_desc.h"
#include "tile/core/shape.h"

namespace heddle::schedule {

// Floors are lower bounds: no run is faster, whatever lies in which cache. Data counts once, as far as it is read; what
// a cache can hold from one run to the next takes that cache's time. Seconds of a CPU are those of one thread.

// Elements of a value that the nodes of a group read, at most: of tables as many as are gathered, of slices their own.
double elements_read(const ir::Graph& graph, const ir::Group& group, ir::ValueId value);

// Bytes of each operand that a kernel of a group reads or writes; those of a workspace are none.
std::vector<double> operand_traffic(const ir::Graph& graph, const ir::Group& group, const ScheduledKernel& kernel);
double traffic(const ir::Graph& graph, const ir::Group& group, const ScheduledKernel& kernel);

// What the memory and caches of a kind of target give at best.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual double cached_bytes(const Target& target) const = 0;
  virtual double memory_seconds(double bytes, const Target& target) const = 0;
  virtual double least_seconds(double bytes, const Target& target) const = 0;

 protected:
  // A cache may hold what is read when a kernel begins, and what was written when it ends.
  static double beyond(double bytes, double cache) { return std::max(0.0, bytes - 2 * cache); }
};

const Memory& cpu_memory();
const Memory& cuda_memory();
const Memory& memory_of(const Target& target);  // in backend.cc

// Data that caches keep from one run to the next, at most.
double cached_bytes(const Target& target);
// The least time to load or store so many bytes of distinct data.
double least_seconds(double bytes, const Target& target);
// The same of data that comes from memory.
double memory_seconds(double bytes, const Target& target);
// The least time of vector arithmetic that takes so many cycles in the measure of ir::OpCost.
double arithmetic_seconds(double cycles, const CpuTarget& cpu);

// Pairs of a result and an element of its window, for all results: the padding is no element.
double products_inside(const tile::WindowShape& shape);

}  // namespace heddle::schedule
