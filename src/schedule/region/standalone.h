#pragma once

#include <functional>
#include <optional>
#include <string>

#include "schedule/kernel_desc.h"

namespace heddle::schedule {

// A scatter or top-k selection (ir::is_standalone). It has its own kernel, between the kernels that make its operands
// and those that read its results, unless it is a root of another kernel (scatters_one_row() in exprs/targets.h).
struct StandaloneDesc {
  ir::Op op;
  DType dtype, index_dtype;  // of the data; of the indices that a scatter reads
  Shape data, indices;       // of a scatter of elements, `indices` has the extents of the updates
  Shape index;               // the extents of the index tensor of a scatter of elements: those of `indices` or 1
  int64_t dim = 0, k = 0;
  bool largest = true;
  std::string reduction;  // of a scatter: "none", "add", "mul", "max", "min"
  bool drop = false;      // of a scatter of elements: updates with an index out of range are left out
  // Of a scatter: the result's memory already holds the data. The operands are then the indices, the updates and the
  // result.
  bool in_place = false;

  // Independent parts: rows of the first dimension, columns behind the indices, or whole columns of a selection.
  int64_t parts() const;
  // The data as [outer][rows][inner]. An update or selection works on the rows of a column. Elements that are moved
  // together, at most 16 bytes, count as one.
  struct Columns {
    int64_t outer, rows, inner, updates, bytes;
  };
  Columns columns() const;
  // By dimension of the updates: the stride in elements from one index to the next; 0 if all share one index.
  Shape index_strides() const;
  bool operator==(const StandaloneDesc&) const = default;
};

// A selection keeps its candidates in the scratch of the thread, which limits their number.
inline constexpr int64_t kMostSelectedOnCpu = 1 << 20;

// Choice, tasks and reason of its configuration (Backend::map()).
void map_standalone(Config& config, const StandaloneDesc& desc, const std::string& what, double seconds,
                    const CpuTarget& cpu);
void map_standalone(Config& config, const StandaloneDesc& desc, const std::string& what, const CudaTarget& cuda);

// The reason why such a node has no kernel; empty if it has one.
std::string standalone_obstacle(const ir::Graph& graph, const ir::Node& node, const Target& target);
// The kernel of a node whose operands are available. Returns none if some must be made first; `make_first` then gets
// each of them and the reason.
std::optional<ScheduledKernel> standalone_kernel(const ir::Graph& graph, const ir::Node& node, const Target& target,
                                                 const std::function<bool(ir::ValueId)>& is_input,
                                                 const std::function<void(ir::ValueId, const std::string&)>& make_first,
                                                 const std::function<Binding(ir::ValueId)>& binding);

}  // namespace heddle::schedule
