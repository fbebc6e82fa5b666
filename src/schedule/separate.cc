#include "schedule/separate.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/expr.h"

namespace heddle::schedule {
namespace {

using ir::Op;

constexpr double kTaskSeconds = 15e-6;     // work per task that hides the cost of handing it out
constexpr double kSelectCycles = 3;        // per element that a selection looks at
constexpr int64_t kMaxSelected = 1 << 20;  // the kept candidates of a thread lie in its scratch

int64_t product(const Shape& shape, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t i = first; i < last; ++i) n *= shape[i];
  return n;
}

double bytes_of(const ir::TensorType& type) {
  return static_cast<double>(element_count(type.shape)) * static_cast<double>(size_of(type.dtype));
}

}  // namespace

bool is_separate(Op op) {
  return op == Op::kScatterElements || op == Op::kScatterNd || op == Op::kTopK;
}

int64_t SeparateDesc::parts() const {
  switch (op) {
    case Op::kScatterElements:
      return dim == 0 ? 1 : data[0];
    case Op::kScatterNd:
      return product(data, static_cast<size_t>(indices.back()), data.size());
    default:
      return element_count(data) / data[static_cast<size_t>(dim)];
  }
}

std::string separate_obstacle(const ir::Graph& graph, const ir::Node& node) {
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (ir::ValueId v : *values) {
      if (element_count(graph.shape(v)) == 0) return "an operand is empty";
    }
  }
  const DType dtype = graph.dtype(node.inputs[0]);
  const bool whole = is_float(dtype) ? size_of(dtype) >= 2 : bits_of(dtype) >= 8 || dtype == DType::kBool;
  if (node.op == Op::kTopK) {
    if (!whole) return fmt::format("selections compare whole bytes, not {}", to_string(dtype));
    if (node.attrs.integer("k") > kMaxSelected) return fmt::format("more than {} elements are selected", kMaxSelected);
    return "";
  }
  if (graph.shape(node.inputs[0]).empty()) return "a scalar has nowhere to scatter to";
  if (!whole && node.attrs.text("reduction") != "none") {
    return fmt::format("scatters combine whole bytes, not {}", to_string(dtype));
  }
  return "";
}

ScheduledKernel separate_kernel(const ir::Graph& graph, const ir::Node& node, const CpuTarget& cpu) {
  auto desc = std::make_shared<SeparateDesc>();
  desc->op = node.op;
  desc->dtype = graph.dtype(node.inputs[0]);
  desc->data = graph.shape(node.inputs[0]);
  ScheduledKernel kernel;
  double seconds = 0;
  for (const auto* values : {&node.inputs, &node.outputs}) {
    const bool input = values == &node.inputs;
    for (ir::ValueId v : *values) {
      const ir::TensorType& type = graph.type(v);
      kernel.desc.operands.push_back(
          {input ? Operand::Role::kInput : Operand::Role::kOutput, type.dtype, type.shape, {}});
      seconds += bytes_of(type) / (cpu.copy_gbps * 1e9);
    }
  }
  kernel.floor_seconds = seconds;
  std::string what;
  if (node.op == Op::kTopK) {
    desc->index_dtype = DType::kI64;
    desc->dim = node.attrs.integer("dim");
    desc->k = node.attrs.integer("k");
    desc->largest = node.attrs.flag("largest");
    seconds += kSelectCycles * static_cast<double>(element_count(desc->data)) / (cpu.ghz * 1e9);
    what = fmt::format("the {} {} of {}", desc->k, desc->largest ? "largest" : "smallest",
                       desc->data[static_cast<size_t>(desc->dim)]);
  } else {
    desc->index_dtype = graph.dtype(node.inputs[1]);
    desc->indices = graph.shape(node.inputs[1]);
    desc->reduction = node.attrs.text("reduction");
    if (node.op == Op::kScatterElements) desc->dim = node.attrs.integer("dim");
    what = fmt::format("{} updates", element_count(graph.shape(node.inputs[2])));
    if (desc->reduction != "none") what += ", " + desc->reduction;
  }
  const int64_t parts = desc->parts();
  int64_t tasks = 1;
  if (cpu.threads > 1 && seconds > 4e-6 * cpu.barrier_us) {
    tasks = std::clamp<int64_t>(static_cast<int64_t>(seconds / kTaskSeconds) + 1, cpu.threads, 16 * cpu.threads);
  }
  kernel.config.tasks = std::min(parts, tasks);
  kernel.config.lanes = cpu.lanes_f32();
  kernel.config.algorithm = std::string(ir::to_string(node.op));
  kernel.config.reason = fmt::format("{}, {} independent parts", what, parts);
  kernel.label = fmt::format("{} {} {}", ir::to_string(node.op), ir::to_string(graph.type(node.inputs[0])), what);
  kernel.desc.body = std::shared_ptr<const SeparateDesc>(std::move(desc));
  return kernel;
}

}  // namespace heddle::schedule
