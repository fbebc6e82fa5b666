#include "frontend/onnx/custom_operator.h"

#include "ir/tile_call.h"

namespace heddle::onnx {
namespace {

using Type = AttributeProto::Type;

std::string name_of(const NodeProto& node) {
  return fmt::format("{}::{}", node.domain.empty() ? "ai.onnx" : node.domain, node.op_type);
}

NodeAttribute attribute_of(const NodeContext& ctx, const std::string& name) {
  switch (ctx.attr(name)->type) {
    case Type::kInt:
      return ctx.attr_int(name);
    case Type::kFloat:
      return ctx.attr_float(name);
    case Type::kString:
      return ctx.attr_string(name);
    case Type::kInts:
      return std::vector<int64_t>(ctx.attr_ints(name));
    case Type::kFloats:
      return ctx.attr_floats(name);
    case Type::kStrings:
      return ctx.attr_strings(name);
    default:
      ctx.invalid(
          fmt::format("attribute '{}' is neither a number nor text, which operators of the caller's take", name));
  }
}

OperatorNode node_of(const NodeContext& ctx) {
  OperatorNode node;
  node.name = ctx.label();
  node.op_type = name_of(ctx.node());
  node.outputs = ctx.output_count();
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has(i)) {
      node.inputs.push_back(PortInfo{std::string(ctx.node().inputs[i]), ctx.dtype(i), ctx.shape(i)});
    } else {
      node.inputs.emplace_back();
    }
  }
  for (const AttributeProto& a : ctx.node().attributes) {
    const std::string name(a.name);
    if (ctx.has_attr(name)) node.attributes.emplace(name, attribute_of(ctx, name));
  }
  return node;
}

}  // namespace

const Operator* custom_operator(const ImportOptions& options, const NodeProto& node) {
  if (options.operators.empty()) return nullptr;
  const auto found = options.operators.find(name_of(node));
  return found == options.operators.end() ? nullptr : &found->second;
}

void lower_custom(const Operator& custom, NodeContext& ctx) {
  const OperatorProgram program = custom(node_of(ctx));
  if (program.outputs.size() < ctx.output_count()) {
    ctx.invalid(
        fmt::format("its operator gives {} outputs, the node has {}", program.outputs.size(), ctx.output_count()));
  }
  std::vector<ir::ValueId> operands;
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has(i)) operands.push_back(ctx.in(i));
  }
  std::vector<ir::TensorType> types;
  for (const PortInfo& output : program.outputs) types.push_back({output.dtype, output.shape});
  const std::vector<ir::ValueId> results =
      ctx.b.emit_all(ir::Op::kCall, std::move(operands),
                     {{"target", "tile"}, {"program", program.text}, {"results", ir::print_types(types)}});
  for (size_t i = 0; i < ctx.output_count(); ++i) {
    if (ctx.wants(i)) ctx.set(i, results[i]);
  }
}

}  // namespace heddle::onnx
