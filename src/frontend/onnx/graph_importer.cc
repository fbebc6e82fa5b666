#include "frontend/onnx/graph_importer.h"

#include <new>

#include "frontend/onnx/custom_operator.h"
#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/lowering/wide.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

constexpr int64_t kSmallConstant = 1 << 16;  // computed constants up to this many elements are copied into bodies

std::string origin_name(const Scope& scope, const NodeProto& node, size_t position) {
  return scope.frame->prefix + node_label(node, position);
}

// The message of an error raised below a handler gets the node's name, unless it has it already.
[[noreturn]] void rethrow_at(const NodeContext& ctx, const std::string& label, const Error& error) {
  if (error.code() == ErrorCode::kInternal || error.where().find(label) != std::string::npos) throw error;
  const std::string why = error.where().empty() ? error.why() : error.where() + ": " + error.why();
  const bool ours = error.code() == ErrorCode::kInvalidArgument;  // a helper's complaint about the node's shapes
  fail(ours ? ErrorCode::kInvalidNode : error.code(), ctx.where(), why, error.remedy());
}

// Lowers an operator that only moves elements on positions in a table of the texts that it is given.
void lower_on_text(const OpHandler& handler, NodeContext& ctx) {
  std::vector<std::string> table;
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    if (ctx.value(i).kind() != Value::Kind::kStrings) continue;
    const Tensor text = ctx.value(i).text();
    const auto first = static_cast<int64_t>(table.size());
    ctx.replace_input(i, int_constant(ctx.b, text.shape(), int_range(text.size(), first)));
    table.insert(table.end(), text.strings().begin(), text.strings().end());
  }
  handler.lower(ctx);
  for (size_t i = 0; i < ctx.output_count(); ++i) {
    if (!ctx.wants(i) || i >= ctx.outputs().size() || !ctx.outputs()[i].is_tensor()) continue;
    if (ctx.b.dtype(ctx.outputs()[i].tensor()) != DType::kI64) ctx.invalid("text is mixed with numbers");
    const Tensor positions = ctx.constant_of(ctx.outputs()[i].tensor());
    std::vector<std::string> text;
    for (const int64_t at : positions.values<int64_t>()) {
      if (at < 0 || at >= static_cast<int64_t>(table.size())) ctx.invalid("text is mixed with numbers");
      text.push_back(table[static_cast<size_t>(at)]);
    }
    ctx.set(i, Value::strings(Tensor::of_strings(positions.shape(), std::move(text))));
  }
}

bool has_text(const NodeContext& ctx) {
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    if (ctx.value(i).kind() == Value::Kind::kStrings) return true;
  }
  return false;
}

void lower_known(const OpHandler& handler, NodeContext& ctx) {
  if (handler.moves_text && has_text(ctx)) {
    lower_on_text(handler, ctx);
  } else {
    lower_wide(handler, ctx);
  }
}

}  // namespace

const Value* GraphImporter::lookup(std::string_view name) {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    if (const auto at = scope->values.find(name); at != scope->values.end()) return &at->second;
    std::optional<Tensor> loaded;
    std::string_view key;  // of the model: `name` may belong to a caller that does not outlive the scope
    const auto where = [&] { return fmt::format("initializer '{}'", name); };
    if (const auto at = scope->initializers.find(name); at != scope->initializers.end()) {
      loaded = state_.loader.load(*at->second, where());
      key = at->first;
    } else if (const auto sparse = scope->sparse_initializers.find(name); sparse != scope->sparse_initializers.end()) {
      loaded = state_.loader.load(*sparse->second, where());
      key = sparse->first;
    }
    if (loaded) {
      const bool text = loaded->dtype() == DType::kString;
      ir::Graph& graph = builder_.graph();
      Value value = text ? Value::strings(*loaded)
                         : Value(graph.constant(*loaded, {graph.origin({std::string(key), "initializer"})}));
      return &scope->values.emplace(key, std::move(value)).first->second;
    }
  }
  return nullptr;
}

void GraphImporter::declare_initializers(const GraphProto& graph, Scope& scope) {
  const auto duplicate = [&](std::string_view name) {
    if (name.empty()) fail(ErrorCode::kMalformedModel, "graph", "an initializer has no name");
    if (scope.initializers.contains(name) || scope.sparse_initializers.contains(name)) {
      fail(ErrorCode::kMalformedModel, fmt::format("initializer '{}'", name), "two initializers have this name");
    }
  };
  for (const TensorProto& t : graph.initializers) {
    duplicate(t.name);
    scope.initializers.emplace(t.name, &t);
  }
  for (const SparseTensorProto& t : graph.sparse_initializers) {
    duplicate(t.values.name);
    scope.sparse_initializers.emplace(t.values.name, &t);
  }
}

std::vector<Value> GraphImporter::run(const GraphProto& graph, Scope& scope) {
  Scope* const enclosing = std::exchange(scope_, &scope);
  declare_initializers(graph, scope);
  run_nodes(graph.nodes, scope);
  std::vector<Value> outputs;
  for (const ValueInfoProto& output : graph.outputs) {
    const Value* value = lookup(output.name);
    if (value == nullptr) {
      fail(ErrorCode::kMalformedModel, fmt::format("output '{}'", output.name),
           "no node, input or initializer defines it");
    }
    outputs.push_back(*value);
  }
  scope_ = enclosing;
  return outputs;
}

void GraphImporter::run_nodes(const std::vector<NodeProto>& nodes, Scope& scope) {
  Scope* const enclosing = std::exchange(scope_, &scope);
  for (const size_t i : topological_order(nodes)) lower(nodes[i], i);
  scope_ = enclosing;
}

std::vector<Value> GraphImporter::read_inputs(const NodeProto& node, const std::string& label) {
  std::vector<Value> inputs;
  for (const std::string_view name : node.inputs) {
    if (name.empty()) {
      inputs.emplace_back();
      continue;
    }
    const Value* value = lookup(name);
    if (value == nullptr) {
      fail(ErrorCode::kMalformedModel, fmt::format("node '{}' ({})", label, node.op_type),
           fmt::format("it reads '{}', which no node, input or initializer defines", name),
           "An initializer may be missing from the file; export the model again");
    }
    inputs.push_back(*value);
  }
  return inputs;
}

void GraphImporter::write_outputs(const NodeProto& node, const std::vector<Value>& outputs, const std::string& label) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string_view name = node.outputs[i];
    if (name.empty()) continue;
    const std::string where = fmt::format("node '{}' ({})", label, node.op_type);
    if (i >= outputs.size() || outputs[i].absent()) {
      fail(ErrorCode::kInvalidNode, where, fmt::format("the operator has no output {} ('{}') here", i, name));
    }
    if (scope_->initializers.contains(name) || !scope_->values.emplace(name, outputs[i]).second) {
      fail(ErrorCode::kMalformedModel, where, fmt::format("'{}' is defined twice", name),
           "Names of a graph must be unique; export the model again");
    }
  }
}

// An error passes through the nodes around the one that failed, too: theirs come after its own.
void GraphImporter::note_extents(const NodeContext& ctx) {
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.value(i).is_tensor()) continue;
    const Shape& shape = ctx.b.shape(ctx.value(i).tensor());
    state_.stuck_at.insert(state_.stuck_at.end(), shape.begin(), shape.end());
  }
}

void GraphImporter::lower(const NodeProto& node, size_t position) {
  const std::string label = origin_name(*scope_, node, position);
  state_.budget.check_nodes(++state_.nodes_lowered, label);
  state_.budget.check_time(label);
  std::vector<Value> inputs = read_inputs(node, label);
  const Operator* const custom = custom_operator(state_.options, node);
  const auto function = state_.functions.find({node.domain, node.op_type, node.overload});
  if (custom == nullptr && function != state_.functions.end()) {
    write_outputs(node, call_function(*function->second, node, std::move(inputs), label), label);
    return;
  }
  const int64_t version = version_of(*scope_->frame->opsets, node.domain);
  const OpHandler* handler = find_handler(node.domain, node.op_type, version);
  HEDDLE_CHECK(custom != nullptr || handler != nullptr, "{} was checked before", node.op_type);
  const std::vector<ir::OriginId> enclosing = builder_.origins();
  builder_.set_origins({builder_.graph().origin({label, std::string(node.op_type)})});
  NodeContext ctx(*this, node, version, std::move(inputs), label);
  try {
    custom != nullptr ? lower_custom(*custom, ctx) : lower_known(*handler, ctx);
  } catch (const Error& error) {
    note_extents(ctx);
    rethrow_at(ctx, label, error);
  } catch (const std::bad_alloc&) {
    ctx.fail(ErrorCode::kOutOfMemory, "there is not enough memory to import this node");
  } catch (const std::length_error&) {
    ctx.fail(ErrorCode::kOutOfMemory, "there is not enough memory to import this node");
  }
  builder_.set_origins(enclosing);
  write_outputs(node, ctx.outputs(), label);
}

std::vector<Value> GraphImporter::call_function(const FunctionProto& function, const NodeProto& node,
                                                std::vector<Value> inputs, const std::string& label) {
  const std::string where = fmt::format("node '{}' ({})", label, node.op_type);
  FunctionFrame frame;
  frame.function = &function;
  frame.opsets = &function.opset_imports;
  frame.prefix = label + "/";
  if (inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size()) {
    fail(ErrorCode::kInvalidNode, where,
         fmt::format("the function takes {} inputs and gives {} outputs; the node has {} and {}",
                     function.inputs.size(), function.outputs.size(), inputs.size(), node.outputs.size()));
  }
  for (const AttributeProto& a : function.attribute_defaults) frame.attributes[a.name] = &a;
  for (const AttributeProto& a : node.attributes) {
    if (const AttributeProto* resolved = resolve(&a)) frame.attributes[a.name] = resolved;
  }
  Scope scope;
  scope.frame = &frame;
  inputs.resize(function.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) scope.values.emplace(function.inputs[i], std::move(inputs[i]));
  run_nodes(function.nodes, scope);
  Scope* const enclosing = std::exchange(scope_, &scope);
  std::vector<Value> outputs;
  for (const std::string_view name : function.outputs) {
    const Value* value = lookup(name);
    if (value == nullptr) {
      fail(ErrorCode::kMalformedModel, where, fmt::format("the function never defines its output '{}'", name));
    }
    outputs.push_back(*value);
  }
  scope_ = enclosing;
  return outputs;
}

const AttributeProto* GraphImporter::resolve(const AttributeProto* attribute) const {
  if (attribute == nullptr || attribute->ref_attr_name.empty()) return attribute;
  const auto& bound = scope_->frame->attributes;
  const auto at = bound.find(attribute->ref_attr_name);
  return at == bound.end() ? nullptr : at->second;
}

std::vector<std::string> GraphImporter::captured_names(const GraphProto& graph) const {
  const std::vector<std::string_view> names = free_names(graph);
  return {names.begin(), names.end()};
}

std::vector<Value> GraphImporter::inline_graph(const GraphProto& graph, std::span<const Value> inputs) {
  Scope scope;
  scope.parent = scope_;
  scope.frame = scope_->frame;
  if (inputs.size() > graph.inputs.size()) {
    fail(ErrorCode::kInvalidNode, fmt::format("graph '{}'", graph.name),
         fmt::format("it takes {} inputs, {} are passed", graph.inputs.size(), inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) scope.values.emplace(graph.inputs[i].name, inputs[i]);
  return run(graph, scope);
}

Value GraphImporter::capture(const Value& outer_value, Body& body, GraphImporter& inner, const std::string& name) {
  switch (outer_value.kind()) {
    case Value::Kind::kTensor: {
      const ir::ValueId v = outer_value.tensor();
      const bool small =
          builder_.graph().constant_of(v) != nullptr || element_count(builder_.shape(v)) <= kSmallConstant;
      if (small && folder_.is_constant(v)) return inner.builder_.graph().constant(folder_.fold(v));
      const ir::ValueId parameter = body.graph->parameter(name, builder_.type(v));
      inner.captured_from_.emplace(parameter, v);
      body.captured.push_back(v);
      return parameter;
    }
    case Value::Kind::kSequence: {
      std::vector<Value> items;
      for (size_t i = 0; i < outer_value.items().size(); ++i) {
        items.push_back(capture(outer_value.items()[i], body, inner, fmt::format("{}.{}", name, i)));
      }
      return Value::sequence(std::move(items));
    }
    default:
      return outer_value;
  }
}

Body GraphImporter::import_body(const GraphProto& graph, std::span<const ir::TensorType> inputs,
                                std::span<const std::string> captures) {
  Body body;
  body.graph = std::make_shared<ir::Graph>();
  GraphImporter inner(state_, *body.graph, this);
  Scope scope;
  scope.frame = scope_->frame;
  if (inputs.size() > graph.inputs.size()) {
    fail(ErrorCode::kInvalidNode, fmt::format("graph '{}'", graph.name),
         fmt::format("it takes {} inputs, {} are passed", graph.inputs.size(), inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view name = graph.inputs[i].name;
    scope.values.emplace(name, body.graph->parameter(std::string(name), inputs[i]));
  }
  for (const std::string& name : captures) {
    const Value* value = lookup(name);
    if (value == nullptr) {
      fail(ErrorCode::kMalformedModel, fmt::format("graph '{}'", graph.name),
           fmt::format("it reads '{}', which no enclosing graph defines", name));
    }
    scope.values.emplace(name, capture(*value, body, inner, "outer." + name));
  }
  body.outputs = inner.run(graph, scope);
  return body;
}

std::optional<Tensor> GraphImporter::try_constant(ir::ValueId v) {
  if (!folder_.is_constant(v)) return std::nullopt;
  return folder_.fold(v);
}

// False when `v` depends on something that no input of the model decides: the state of a loop.
bool GraphImporter::collect_roots(ir::ValueId v, std::set<std::string>& names) {
  for (const ir::ValueId parameter : folder_.parameters_of(v)) {
    if (const auto name = input_names_.find(parameter); name != input_names_.end()) {
      names.insert(name->second);
    } else if (const auto from = captured_from_.find(parameter); from != captured_from_.end() && outer_ != nullptr) {
      if (!outer_->collect_roots(from->second, names)) return false;
    } else {
      return false;
    }
  }
  return true;
}

Tensor GraphImporter::constant(ir::ValueId v, const NodeContext& asking) {
  if (std::optional<Tensor> known = try_constant(v)) return *known;
  std::set<std::string> names;
  if (!collect_roots(v, names)) {
    asking.fail(ErrorCode::kUnknownShape, "a shape here changes from one iteration of a loop to the next",
                "Heddle compiles for static shapes; rewrite the loop so that its shapes are fixed");
  }
  throw SpecialiseInputs{std::move(names), asking.where()};
}

}  // namespace heddle::onnx
