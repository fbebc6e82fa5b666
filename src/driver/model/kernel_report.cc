#include "driver/model/kernel_report.h"

#include "schedule/product/contraction.h"

namespace heddle::driver {
namespace {

// What the model calls a value: the name of an input or output, else the node that makes it.
std::string name_of(const ir::Graph& graph, ir::ValueId value) {
  for (const ir::Graph::Port& output : graph.outputs()) {
    if (output.value == value) return output.name;
  }
  const ir::Node& node = graph.producer(value);
  if (node.op == ir::Op::kParameter) return node.attrs.text("name");
  return node.origins.empty() ? "" : graph.origin(node.origins.back()).node;
}

OperandReport operand_report(const ir::Graph& graph, const schedule::Operand& operand,
                             const schedule::Binding& binding) {
  OperandReport report;
  report.output = operand.role == schedule::Operand::Role::kOutput;
  report.dtype = operand.dtype;
  report.shape = operand.shape;
  report.packing = operand.packing.kind;
  if (binding.kind == schedule::Binding::Kind::kWorkspace) report.name = "workspace";
  report.constant = binding.kind == schedule::Binding::Kind::kTensor;
  if (binding.kind == schedule::Binding::Kind::kValue) {
    report.name = name_of(graph, binding.value);
    report.constant = graph.constant_of(binding.value) != nullptr;
  }
  return report;
}

// Whether memory limits a contraction.
bool moves_memory(const schedule::ScheduledKernel& kernel) {
  if (kernel.config.get<schedule::CpuGemvConfig>() != nullptr) return true;
  const auto contraction = kernel.desc.get<schedule::ContractionDesc>();
  const auto* window = contraction != nullptr ? contraction->get<schedule::WindowDesc>() : nullptr;
  return window != nullptr && !window->filters;
}

}  // namespace

KernelReport report_of(const ir::Graph& graph, const schedule::ScheduledKernel& kernel,
                       const codegen::KernelSource& source) {
  KernelReport report;
  report.label = kernel.label;
  report.symbol = source.symbol;
  report.family = family_of(kernel.config);
  report.moves_memory = moves_memory(kernel);
  report.reason = kernel.config.reason;
  report.tasks = source.tasks;
  report.floor_seconds = kernel.floor_seconds;
  report.stitch = kernel.stitch;
  report.launches = source.launches;
  if (!report.family.empty()) report.config = schedule::name_of(kernel.config);
  report.desc = kernel.desc;
  report.configuration = kernel.config;
  report.has_arguments = !source.arguments.empty();
  report.texts.push_back(source.symbol);
  for (const codegen::KernelText& other : source.others) report.texts.push_back(other.symbol);
  for (size_t i = 0; i < kernel.bindings.size(); ++i) {
    report.operands.push_back(operand_report(graph, kernel.desc.operands[i], kernel.bindings[i]));
  }
  return report;
}

}  // namespace heddle::driver
