#include "frontend/onnx/node_context.h"

#include <algorithm>

#include "frontend/onnx/graph_importer.h"
#include "ir/reference/array.h"

namespace heddle::onnx {
namespace {

using Type = AttributeProto::Type;

}  // namespace

NodeContext::NodeContext(GraphImporter& importer, const NodeProto& node, int64_t version, std::vector<Value> inputs,
                         std::string label)
    : b(importer.builder()),
      importer_(importer),
      node_(node),
      version_(version),
      inputs_(std::move(inputs)),
      outputs_(node.outputs.size()),
      label_(std::move(label)) {}

std::string NodeContext::where() const {
  std::string text = fmt::format("node '{}' ({}", label_, node_.op_type);
  for (const Value& value : inputs_) {
    switch (value.kind()) {
      case Value::Kind::kTensor:
        text += ", " + ir::to_string(b.type(value.tensor()));
        break;
      case Value::Kind::kStrings:
        text += ", string" + to_string(value.text().shape());
        break;
      case Value::Kind::kSequence:
        text += fmt::format(", sequence of {}", value.items().size());
        break;
      case Value::Kind::kAbsent:
      case Value::Kind::kNone:
        text += ", -";
    }
  }
  return text + ")";
}

void NodeContext::fail(ErrorCode code, std::string why, std::string remedy) const {
  heddle::fail(code, where(), std::move(why), std::move(remedy));
}

const AttributeProto* NodeContext::attr(std::string_view name) const {
  return importer_.resolve(node_.attribute(name));
}

namespace {

const AttributeProto& typed(const NodeContext& ctx, std::string_view name, Type type, std::string_view kind) {
  const AttributeProto* a = ctx.attr(name);
  if (a == nullptr) ctx.invalid(fmt::format("attribute '{}' is missing", name));
  if (a->type != type) ctx.invalid(fmt::format("attribute '{}' is not {}", name, kind));
  return *a;
}

}  // namespace

int64_t NodeContext::attr_int(std::string_view name) const {
  return typed(*this, name, Type::kInt, "an integer").i;
}
int64_t NodeContext::attr_int(std::string_view name, int64_t fallback) const {
  return has_attr(name) ? attr_int(name) : fallback;
}
double NodeContext::attr_float(std::string_view name) const {
  return typed(*this, name, Type::kFloat, "a number").f;
}
double NodeContext::attr_float(std::string_view name, double fallback) const {
  return has_attr(name) ? attr_float(name) : fallback;
}
std::string NodeContext::attr_string(std::string_view name) const {
  return std::string(typed(*this, name, Type::kString, "text").s);
}
std::string NodeContext::attr_string(std::string_view name, std::string_view fallback) const {
  return has_attr(name) ? attr_string(name) : std::string(fallback);
}
ir::Ints NodeContext::attr_ints(std::string_view name, ir::Ints fallback) const {
  // A writer that leaves the type out cannot mark an empty list.
  const AttributeProto* a = attr(name);
  if (a == nullptr) return fallback;
  if (a->type == Type::kUndefined) return {};
  return typed(*this, name, Type::kInts, "a list of integers").ints;
}
std::vector<double> NodeContext::attr_floats(std::string_view name) const {
  if (!has_attr(name)) return {};
  const auto& values = typed(*this, name, Type::kFloats, "a list of numbers").floats;
  return {values.begin(), values.end()};
}
std::vector<std::string> NodeContext::attr_strings(std::string_view name) const {
  if (!has_attr(name)) return {};
  const auto& values = typed(*this, name, Type::kStrings, "a list of texts").strings;
  return {values.begin(), values.end()};
}
Tensor NodeContext::attr_tensor(std::string_view name) const {
  const AttributeProto& a = typed(*this, name, Type::kTensor, "a tensor");
  if (!a.t) invalid(fmt::format("attribute '{}' holds no tensor", name));
  return importer_.state().loader.load(*a.t, fmt::format("attribute '{}' of {}", name, where()));
}
Tensor NodeContext::attr_sparse_tensor(std::string_view name) const {
  const AttributeProto& a = typed(*this, name, Type::kSparseTensor, "a sparse tensor");
  if (!a.sparse) invalid(fmt::format("attribute '{}' holds no tensor", name));
  return importer_.state().loader.load(*a.sparse, fmt::format("attribute '{}' of {}", name, where()));
}
const GraphProto& NodeContext::attr_graph(std::string_view name) const {
  const AttributeProto& a = typed(*this, name, Type::kGraph, "a graph");
  if (!a.g) invalid(fmt::format("attribute '{}' holds no graph", name));
  return *a.g;
}
DType NodeContext::attr_dtype(std::string_view name, DType fallback) const {
  if (!has_attr(name)) return fallback;
  const DType type = dtype_of(attr_int(name), where());
  if (type == DType::kString) fail(ErrorCode::kUnsupportedType, fmt::format("attribute '{}' asks for text", name));
  return type;
}

const Value& NodeContext::value(size_t i) const {
  static const Value kAbsent;
  return i < inputs_.size() ? inputs_[i] : kAbsent;
}

ir::ValueId NodeContext::in(size_t i) const {
  switch (value(i).kind()) {
    case Value::Kind::kTensor:
      return value(i).tensor();
    case Value::Kind::kAbsent:
      invalid(fmt::format("input {} is missing", i));
    case Value::Kind::kStrings:
      fail(ErrorCode::kUnsupportedType, fmt::format("input {} is text, which this operator does not take", i));
    case Value::Kind::kSequence:
    case Value::Kind::kNone:
      invalid(fmt::format("input {} is a sequence or an empty optional, a tensor is expected", i));
  }
  return 0;
}

std::vector<ir::ValueId> NodeContext::tensors() const {
  std::vector<ir::ValueId> all;
  for (size_t i = 0; i < inputs_.size(); ++i) all.push_back(in(i));
  return all;
}

Tensor NodeContext::constant(size_t i) const {
  if (value(i).kind() == Value::Kind::kStrings) return value(i).text();
  return constant_of(in(i));
}
std::optional<Tensor> NodeContext::try_constant(size_t i) const {
  if (value(i).kind() == Value::Kind::kStrings) return value(i).text();
  return try_constant_of(in(i));
}
Tensor NodeContext::constant_of(ir::ValueId v) const {
  return importer_.constant(v, *this);
}
std::optional<Tensor> NodeContext::try_constant_of(ir::ValueId v) const {
  return importer_.try_constant(v);
}

ir::Ints NodeContext::constant_ints(size_t i) const {
  if (!is_int(dtype(i)) && dtype(i) != DType::kBool) invalid(fmt::format("input {} must be an integer tensor", i));
  return ir::to_array(constant(i)).i();
}
std::vector<double> NodeContext::constant_reals(size_t i) const {
  if (!is_float(dtype(i))) invalid(fmt::format("input {} must be a floating-point tensor", i));
  return ir::to_array(constant(i)).f();
}
int64_t NodeContext::constant_int(size_t i) const {
  const ir::Ints values = constant_ints(i);
  if (values.size() != 1) invalid(fmt::format("input {} must hold one integer", i));
  return values[0];
}
double NodeContext::constant_real(size_t i) const {
  if (!is_float(dtype(i))) return static_cast<double>(constant_int(i));
  const std::vector<double> values = constant_reals(i);
  if (values.size() != 1) invalid(fmt::format("input {} must hold one number", i));
  return values[0];
}

void NodeContext::set(size_t i, Value value) {
  if (i >= outputs_.size()) outputs_.resize(i + 1);
  outputs_[i] = std::move(value);
}

std::optional<int64_t> NodeContext::declared_extent(size_t output, size_t dim) const {
  if (!wants(output)) return std::nullopt;
  return importer_.state().extents.declared(node_.outputs[output], dim, importer_.state().guesses);
}

std::vector<std::string> NodeContext::captured_names(const GraphProto& graph) const {
  return importer_.captured_names(graph);
}
std::vector<Value> NodeContext::inline_graph(const GraphProto& graph, std::span<const Value> inputs) {
  return importer_.inline_graph(graph, inputs);
}
Body NodeContext::import_body(const GraphProto& graph, std::span<const ir::TensorType> inputs,
                              std::span<const std::string> captures) {
  return importer_.import_body(graph, inputs, captures);
}

std::vector<FailingBranch>& NodeContext::failing_branches() {
  return importer_.state().failing_branches;
}

uint64_t NodeContext::default_seed() const {
  return importer_.state().nodes_lowered;
}

int64_t NodeContext::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) invalid(fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

ir::Ints NodeContext::axes(ir::Ints axes, int64_t rank) const {
  for (int64_t& a : axes) a = axis(a, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) invalid("an axis is named twice");
  return axes;
}

}  // namespace heddle::onnx
