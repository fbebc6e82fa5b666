#include "schedule/region/standalone.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/divide.h"
#include "ir/reference/scalar.h"
#include "schedule/backend.h"
#include "schedule/expr/expr.h"
#include "schedule/floor.h"
#include "schedule/region/cuda/scatter.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kWidestAccess = 16;                      // bytes
constexpr int64_t kMaxPositions = (int64_t{1} << 32) - 1;  // a position shares 64 bits with a key

int64_t product(const Shape& shape, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t i = first; i < last; ++i) n *= shape[i];
  return n;
}

double bytes_of(const ir::TensorType& type) {
  return static_cast<double>(element_count(type.shape)) * static_cast<double>(size_of(type.dtype));
}

}  // namespace

int64_t StandaloneDesc::parts() const {
  switch (op) {
    case Op::kScatterElements:
      return data[dim == 0 && data.size() > 1 ? 1 : 0];
    case Op::kScatterNd:
      return product(data, static_cast<size_t>(indices.back()), data.size());
    default:
      return element_count(data) / data[static_cast<size_t>(dim)];
  }
}

std::string standalone_obstacle(const ir::Graph& graph, const ir::Node& node, const Target& target) {
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (ir::ValueId v : *values) {
      if (element_count(graph.shape(v)) == 0) return "an operand is empty";
    }
  }
  const DType dtype = graph.dtype(node.inputs[0]);
  const bool whole = is_float(dtype) ? size_of(dtype) >= 2 : bits_of(dtype) >= 8 || dtype == DType::kBool;
  if (node.op == Op::kTopK) {
    if (!whole) return fmt::format("selections compare whole bytes, not {}", to_string(dtype));
    if (const int64_t most = backend_of(target).most_selected(); node.attrs.integer("k") > most) {
      return fmt::format("more than {} elements are selected", most);
    }
    if (graph.shape(node.inputs[0])[static_cast<size_t>(node.attrs.integer("dim"))] > kMaxPositions) {
      return fmt::format("there are more than {} elements to select from", kMaxPositions);
    }
    return "";
  }
  if (graph.shape(node.inputs[0]).empty()) return "a scalar has nowhere to scatter to";
  if (!whole && node.attrs.text("reduction") != "none") {
    return fmt::format("scatters combine whole bytes, not {}", to_string(dtype));
  }
  return "";
}

namespace {

// Returns the threads of a block. A block has a column.
int64_t map_selection_to_cuda(Config& config, const StandaloneDesc& desc) {
  const int64_t n = desc.data[static_cast<size_t>(desc.dim)];
  const SelectConfig c{n <= 64 ? 32 : n <= 512 ? 128 : n <= 2048 ? 512 : 1024};
  config.choice = c;
  config.tasks = desc.parts();
  return c.threads;
}

// Tasks have whole rows, which are contiguous, and share rows only if there are fewer rows than threads. Every task
// reads all indices. So beyond one for each thread, there are only as many tasks as read few bytes compared with those
// that are moved.
void map_slices_to_cpu(Config& config, const StandaloneDesc& desc, int64_t tasks, double seconds,
                       const CpuTarget& cpu) {
  constexpr double kMostRead = 0.125;
  constexpr int64_t kLeastBytes = 256;  // of a row for each task
  const StandaloneDesc::Columns columns = desc.columns();
  const double read = static_cast<double>(element_count(desc.indices)) * static_cast<double>(size_of(desc.index_dtype));
  const double moved = seconds * cpu.copy_gbps * 1e9;
  tasks = std::min(tasks, std::max<int64_t>(cpu.threads, static_cast<int64_t>(kMostRead * moved / read)));
  const int64_t inner = desc.parts(), bytes = inner * static_cast<int64_t>(size_of(desc.dtype));
  ScatterSlicesConfig c;
  c.rows = ceil_div(columns.rows, std::min(tasks, columns.rows));
  const int64_t down = ceil_div(columns.rows, c.rows);
  c.columns = down >= cpu.threads ? inner : ceil_div(inner, std::clamp<int64_t>(bytes / kLeastBytes, 1, tasks / down));
  config.choice = c;
  config.tasks = down * ceil_div(inner, c.columns);
}

}  // namespace

void map_standalone(Config& config, const StandaloneDesc& desc, const std::string& what, double seconds,
                    const CpuTarget& cpu) {
  if (desc.op == Op::kTopK) {
    seconds += cpu.model.select_cycles * static_cast<double>(element_count(desc.data)) / (cpu.ghz * 1e9);
  }
  int64_t tasks = 1;
  if (cpu.threads > 1 && seconds > 4e-6 * cpu.barrier_us) {
    const auto wanted = static_cast<int64_t>(seconds / (1e-6 * cpu.model.task_us)) + 1;
    tasks = std::clamp<int64_t>(wanted, cpu.threads, 16 * cpu.threads);
  }
  config.predicted_us = 1e6 * seconds / static_cast<double>(std::min<int64_t>(tasks, cpu.threads));
  if (desc.op == Op::kScatterNd) {
    map_slices_to_cpu(config, desc, tasks, seconds, cpu);
  } else {
    config.choice = NoChoice{std::string(ir::to_string(desc.op))};
    config.tasks = std::min(desc.parts(), tasks);
  }
  config.reason = fmt::format("{}, {} tasks", what, config.tasks);
}

void map_standalone(Config& config, const StandaloneDesc& desc, const std::string& what, const GpuTarget& gpu) {
  const bool selects = desc.op == Op::kTopK;
  const int64_t threads = selects ? map_selection_to_cuda(config, desc) : map_scatter_to_cuda(config, desc, gpu);
  config.reason = fmt::format("{}, {} blocks of {} threads", what, config.tasks, threads);
  if (!selects) config.reason += fmt::format(", {}, {:.1f} us predicted", name_of(config), config.predicted_us);
}

StandaloneDesc::Columns StandaloneDesc::columns() const {
  const auto bytes = static_cast<int64_t>(size_of(dtype));
  if (op == Op::kScatterNd) {
    const auto depth = static_cast<size_t>(indices.back());
    const int64_t inner = product(data, depth, data.size());
    int64_t together = 1;
    while (reduction == "none" && inner % (2 * together) == 0 && 2 * together * bytes <= kWidestAccess) together *= 2;
    return {1, product(data, 0, depth), inner / together, element_count(indices) / indices.back(), together * bytes};
  }
  const auto d = static_cast<size_t>(dim);
  const int64_t updates = op == Op::kTopK ? 0 : indices[d];
  return {product(data, 0, d), data[d], product(data, d + 1, data.size()), updates, bytes};
}

Shape StandaloneDesc::index_strides() const {
  Shape strides(index.size());
  int64_t stride = 1;
  for (size_t d = index.size(); d-- > 0; stride *= index[d]) {
    strides[d] = index[d] == 1 && indices[d] != 1 ? 0 : stride;
  }
  return strides;
}

namespace {

// The bits of the element that a value consists of, if it is a constant of whole bytes with equal elements.
std::optional<uint64_t> fill_of(const ir::Graph& graph, ir::ValueId v) {
  const ir::Node* node = &graph.producer(v);
  while (node->op == Op::kBroadcast || node->op == Op::kReshape || node->op == Op::kTranspose) {
    node = &graph.producer(node->inputs[0]);
  }
  if (node->op != Op::kConstant) return std::nullopt;
  const Tensor& constant = node->attrs.tensor("value");
  if (bits_of(constant.dtype()) % 8 != 0 || !ir::is_splat(constant)) return std::nullopt;
  uint64_t bits = 0;
  std::memcpy(&bits, constant.data(), size_of(constant.dtype()));
  return bits;
}

// What the kernel reads: nothing of data that is written in place or that is one value.
std::vector<ir::ValueId> values_read(const ir::Graph& graph, const ir::Node& node) {
  const bool skips = node.op != Op::kTopK && (ir::is_in_place(node) || fill_of(graph, node.inputs[0]));
  return {node.inputs.begin() + (skips ? 1 : 0), node.inputs.end()};
}

// What the kernel of a scatter in place moves: indices, and each update in and out.
double updated_bytes(const ir::Graph& graph, const ir::Node& node) {
  return bytes_of(graph.type(node.inputs[1])) + 2 * bytes_of(graph.type(node.inputs[2]));
}

// Its operands are what it reads and the node's outputs in order, without bindings.
ScheduledKernel kernel_of(const ir::Graph& graph, const ir::Node& node, const Target& target) {
  auto desc = std::make_shared<StandaloneDesc>();
  desc->op = node.op;
  desc->dtype = graph.dtype(node.inputs[0]);
  desc->data = graph.shape(node.inputs[0]);
  ScheduledKernel kernel;
  const double bandwidth = target.copy_bytes_per_second();
  double seconds = 0;
  const std::vector<ir::ValueId> read = values_read(graph, node);
  for (const auto* values : {&read, &node.outputs}) {
    const bool input = values == &read;
    for (ir::ValueId v : *values) {
      const ir::TensorType& type = graph.type(v);
      kernel.desc.operands.push_back(
          {input ? Operand::Role::kInput : Operand::Role::kOutput, type.dtype, type.shape, {}});
      seconds += bytes_of(type) / bandwidth;
    }
  }
  desc->in_place = kernel.desc.operands.back().in_place = ir::is_in_place(node);
  if (desc->in_place) seconds = updated_bytes(graph, node) / bandwidth;
  kernel.floor_seconds = least_seconds(seconds * bandwidth, target);
  std::string what;
  if (node.op == Op::kTopK) {
    desc->index_dtype = DType::kI64;
    desc->dim = node.attrs.integer("dim");
    desc->k = node.attrs.integer("k");
    desc->largest = node.attrs.flag("largest");
    what = fmt::format("the {} {} of {}", desc->k, desc->largest ? "largest" : "smallest",
                       desc->data[static_cast<size_t>(desc->dim)]);
  } else {
    desc->index_dtype = graph.dtype(node.inputs[1]);
    desc->indices = graph.shape(node.inputs[1]);
    desc->reduction = node.attrs.text("reduction");
    desc->unordered = node.attrs.has("unordered") && node.attrs.flag("unordered");
    if (!desc->in_place) desc->fill = fill_of(graph, node.inputs[0]);
    if (node.op == Op::kScatterElements) {
      desc->dim = node.attrs.integer("dim");
      desc->index = std::exchange(desc->indices, graph.shape(node.inputs[2]));
      desc->drop = node.attrs.has("drop") && node.attrs.flag("drop");
    }
    what = fmt::format("{} updates", element_count(graph.shape(node.inputs[2])));
    if (desc->reduction != "none") what += ", " + desc->reduction;
    if (desc->in_place) what += " in place";
  }
  backend_of(target).map(kernel.config, *desc, what, seconds, target);
  kernel.label = fmt::format("{} {} {}", ir::to_string(node.op), ir::to_string(graph.type(node.inputs[0])), what);
  kernel.desc.body = std::shared_ptr<const StandaloneDesc>(std::move(desc));
  return kernel;
}

}  // namespace

std::optional<ScheduledKernel> standalone_kernel(const ir::Graph& graph, const ir::Node& node, const Target& target,
                                                 const std::function<bool(ir::ValueId)>& is_input,
                                                 const std::function<void(ir::ValueId, const std::string&)>& make_first,
                                                 const std::function<Binding(ir::ValueId)>& binding) {
  // A reshape of what is in memory is in memory.
  std::vector<ir::ValueId> operands = values_read(graph, node);
  for (ir::ValueId& v : operands) {
    ir::ValueId under = v;
    while (!is_input(under) && graph.producer(under).op == Op::kReshape) under = graph.producer(under).inputs[0];
    if (is_input(under)) v = under;
  }
  bool ready = true;
  for (ir::ValueId v : operands) {
    if (is_input(v)) continue;
    ready = false;
    make_first(v, fmt::format("{} reads it at positions that only its kernel knows", ir::to_string(node.op)));
  }
  if (!ready) return std::nullopt;
  ScheduledKernel kernel = kernel_of(graph, node, target);
  operands.insert(operands.end(), node.outputs.begin(), node.outputs.end());
  for (ir::ValueId v : operands) kernel.bindings.push_back(binding(v));
  return kernel;
}

}  // namespace heddle::schedule
