#pragma once

#include <functional>
#include <optional>
#include <string>

#include "schedule/kernel_desc.h"

namespace heddle::schedule {

// A scatter or a top-k selection (ir::is_standalone). It has its own kernel, which runs after the kernels that compute
// its operands and before the kernels that read its results. The exception is a scatter that is a root of another
// kernel (scatters_one_row() in exprs/targets.h).
struct StandaloneDesc {
  ir::Op op;
  DType dtype, index_dtype;  // types of the data and of a scatter's indices
  Shape data, indices;       // for a scatter of elements, `indices` has the extents of the updates
  Shape index;               // for a scatter of elements: extents of the index tensor, each as in `indices` or 1
  int64_t dim = 0, k = 0;
  bool largest = true;
  std::string reduction;   // for a scatter: "none", "add", "mul", "max" or "min"
  bool drop = false;       // for a scatter of elements: updates with an index out of range are ignored
  bool unordered = false;  // for a scatter: updates of one element may be added in any order
  // For a scatter: the memory of the result already contains the data, or the data is one value, whose bits are `fill`.
  // In both cases, the operands are the indices, the updates and the result.
  bool in_place = false;
  std::optional<uint64_t> fill;

  // The number of parts that can be processed independently. For a scatter of elements, a part is the data at one index
  // of the first dimension along which nothing is scattered, or one element of a vector. For a scatter of slices, a
  // part is the data at one position within the slices. For a selection, a part is a column along `dim`.
  int64_t parts() const;
  // The data as [outer][rows][inner]. An update or a selection works on the rows of a column. Elements that are moved
  // together count as one element of at most 16 bytes.
  struct Columns {
    int64_t outer, rows, inner, updates, bytes;
  };
  Columns columns() const;
  // For each dimension of the updates, returns the stride of the index tensor, in elements. The stride is 0 if all
  // updates along the dimension share one index.
  Shape index_strides() const;
  bool operator==(const StandaloneDesc&) const = default;
};

// The maximum number of elements that a selection on a CPU selects. A selection keeps its candidates in the thread's
// scratch memory, which has limited size.
inline constexpr int64_t kMostSelectedOnCpu = 1 << 20;

// For Backend::map(): sets the choice in a configuration, its number of tasks, and the text that explains it
// (`reason`).
void map_standalone(Config& config, const StandaloneDesc& desc, const std::string& what, double seconds,
                    const CpuTarget& cpu);
void map_standalone(Config& config, const StandaloneDesc& desc, const std::string& what, const GpuTarget& gpu);

// The reason why a scatter or selection has no kernel on the target; "" if it has one.
std::string standalone_obstacle(const ir::Graph& graph, const ir::Node& node, const Target& target);
// The kernel of a node whose operands are available. If other kernels must compute some operands first, calls
// `make_first` with each of these operands and the reason, and returns nullopt.
std::optional<ScheduledKernel> standalone_kernel(const ir::Graph& graph, const ir::Node& node, const Target& target,
                                                 const std::function<bool(ir::ValueId)>& is_input,
                                                 const std::function<void(ir::ValueId, const std::string&)>& make_first,
                                                 const std::function<Binding(ir::ValueId)>& binding);

}  // namespace heddle::schedule
