#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "frontend/onnx/importer.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

using ir::Ints;
using ir::Op;
using ir::TensorType;
using ir::ValueId;

// Of a loop that is repeated in the graph itself: iterations, and nodes of all of them.
constexpr int64_t kMostUnrolled = 4096, kMostUnrolledNodes = 100'000;

std::vector<std::string> merge(std::vector<std::string> names, const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

bool all_tensors(std::span<const Value> values) {
  return std::all_of(values.begin(), values.end(), [](const Value& v) { return v.is_tensor(); });
}

std::vector<TensorType> types_of(const ir::Graph& graph, std::span<const Value> values) {
  std::vector<TensorType> types;
  for (const Value& v : values) types.push_back(graph.type(v.tensor()));
  return types;
}

bool truth(const Tensor& condition) {
  return condition.values<uint8_t>()[0] != 0;
}

void require_one_bool(const NodeContext& ctx, const TensorType& type) {
  if (type.dtype != DType::kBool || element_count(type.shape) != 1) {
    ctx.invalid("a condition must be one bool, not " + ir::to_string(type));
  }
}

// ---- If

std::vector<Value> inline_branch(NodeContext& ctx, bool condition) {
  return ctx.inline_graph(ctx.attr_graph(condition ? "then_branch" : "else_branch"), {});
}

struct Branch {
  std::optional<Body> body;
  std::optional<Error> error;  // why there is none
};

// Whether an error says that a branch does not hold for these shapes. Such a branch is an error where it is taken, as
// its condition may never let that happen.
bool depends_on_shapes(ErrorCode code) {
  return code == ErrorCode::kInvalidNode || code == ErrorCode::kUnknownShape ||
         code == ErrorCode::kUnsupportedOperator || code == ErrorCode::kUnsupportedType;
}

Branch import_branch(NodeContext& ctx, const GraphProto& graph, std::span<const std::string> captures) {
  Branch branch;
  const size_t noted = ctx.failing_branches().size();
  try {
    branch.body = ctx.import_body(graph, {}, captures);
  } catch (const Error& error) {
    if (!depends_on_shapes(error.code())) throw;
    branch.error = error;
    ctx.failing_branches().erase(ctx.failing_branches().begin() + static_cast<int64_t>(noted),
                                 ctx.failing_branches().end());
  }
  return branch;
}

// A body that takes what `other` takes and ends with an error where `other` has results.
Body failing_body(const NodeContext& ctx, const Body& other, const Error& error) {
  Body body;
  body.graph = std::make_shared<ir::Graph>();
  body.captured = other.captured;
  for (const ir::Graph::Port& port : other.graph->inputs()) {
    body.graph->parameter(port.name, other.graph->type(port.value));
  }
  for (const Value& result : other.outputs) {
    const TensorType type = other.graph->type(result.tensor());
    body.outputs.emplace_back(body.graph->emit(Op::kCall, {},
                                               {{"target", std::string("fail")},
                                                {"dtype", type.dtype},
                                                {"shape", type.shape},
                                                {"code", static_cast<int64_t>(error.code())},
                                                {"where", fmt::format("{}: {}", ctx.where(), error.where())},
                                                {"why", error.why()},
                                                {"remedy", error.remedy()}}));
  }
  return body;
}

// Both branches as bodies of an `if`; nothing where their results differ in type or are not tensors. Where one cannot
// be made for these shapes, its results are those of the other, and taking it is an error.
std::optional<std::vector<Value>> emit_if(NodeContext& ctx) {
  const GraphProto &then = ctx.attr_graph("then_branch"), &other = ctx.attr_graph("else_branch");
  const std::vector<std::string> captures = merge(ctx.captured_names(then), ctx.captured_names(other));
  Branch branches[] = {import_branch(ctx, then, captures), import_branch(ctx, other, captures)};
  if (!branches[0].body && !branches[1].body) throw Error(*branches[0].error);
  for (int i = 0; i < 2; ++i) {
    if (branches[i].body) continue;
    const Body& whole = *branches[1 - i].body;
    if (!all_tensors(whole.outputs)) return std::nullopt;
    ctx.failing_branches().push_back({ctx.label(), i == 0 ? "then_branch" : "else_branch", *branches[i].error});
    branches[i].body = failing_body(ctx, whole, *branches[i].error);
  }
  Body bodies[] = {std::move(*branches[0].body), std::move(*branches[1].body)};
  if (!all_tensors(bodies[0].outputs) || !all_tensors(bodies[1].outputs) ||
      types_of(*bodies[0].graph, bodies[0].outputs) != types_of(*bodies[1].graph, bodies[1].outputs)) {
    return std::nullopt;
  }
  for (Body& body : bodies) {
    for (size_t i = 0; i < body.outputs.size(); ++i) {
      body.graph->output(fmt::format("result{}", i), body.outputs[i].tensor());
    }
  }
  HEDDLE_CHECK(bodies[0].captured == bodies[1].captured, "the branches of an If capture different values");
  std::vector<ValueId> operands = {ctx.b.reshape(ctx.in(0), {})};
  operands.insert(operands.end(), bodies[0].captured.begin(), bodies[0].captured.end());
  const auto results = ctx.b.emit_all(Op::kIf, std::move(operands),
                                      {{"then", std::shared_ptr<const ir::Graph>(bodies[0].graph)},
                                       {"else", std::shared_ptr<const ir::Graph>(bodies[1].graph)}});
  return std::vector<Value>(results.begin(), results.end());
}

void lower_if(NodeContext& ctx) {
  require_one_bool(ctx, ctx.type(0));
  std::optional<std::vector<Value>> results;
  if (const auto condition = ctx.try_constant(0)) {
    results = inline_branch(ctx, truth(*condition));
  } else {
    results = emit_if(ctx);
    if (!results) results = inline_branch(ctx, truth(ctx.constant(0)));
  }
  if (results->size() != ctx.output_count()) {
    ctx.invalid(fmt::format("a branch has {} results, the node {}", results->size(), ctx.output_count()));
  }
  for (size_t i = 0; i < results->size(); ++i) ctx.set(i, (*results)[i]);
}

// ---- Loop

struct LoopParts {
  const GraphProto& body;
  std::vector<Value> states;  // initial
  size_t slices = 0;
};

LoopParts loop_parts(const NodeContext& ctx) {
  LoopParts parts{ctx.attr_graph("body"), {}, 0};
  for (size_t i = 2; i < ctx.input_count(); ++i) parts.states.push_back(ctx.value(i));
  const size_t formal = parts.body.inputs.size(), results = parts.body.outputs.size();
  if (formal != 2 + parts.states.size() || results < 1 + parts.states.size()) {
    ctx.invalid(fmt::format("the body has {} inputs and {} outputs; the loop carries {} values", formal, results,
                            parts.states.size()));
  }
  parts.slices = results - 1 - parts.states.size();
  if (ctx.output_count() > parts.states.size() + parts.slices) {
    ctx.invalid(fmt::format("the node has {} outputs, its body provides {}", ctx.output_count(),
                            parts.states.size() + parts.slices));
  }
  return parts;
}

bool is_true(const ir::Graph& graph, ValueId v) {
  const Tensor* known = graph.constant_of(v);
  return known != nullptr && truth(*known);
}

// The `loop` primitive; nothing where the body changes the type of a state, carries sequences, or may stop early while
// slices are stacked (their number would depend on data).
std::optional<std::vector<Value>> emit_loop(NodeContext& ctx, const LoopParts& parts) {
  if (!all_tensors(parts.states)) return std::nullopt;
  std::vector<TensorType> formal = {{DType::kI64, {}}, {DType::kBool, {}}};
  const std::vector<TensorType> states = types_of(ctx.b.graph(), parts.states);
  formal.insert(formal.end(), states.begin(), states.end());
  Body body;
  try {
    body = ctx.import_body(parts.body, formal, ctx.captured_names(parts.body));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnknownShape) throw;
    return std::nullopt;  // shapes that follow the iteration: unrolling may know them
  }
  ir::Graph& graph = *body.graph;
  if (!all_tensors(body.outputs)) return std::nullopt;
  const std::vector<TensorType> results = types_of(graph, body.outputs);
  if (!std::equal(states.begin(), states.end(), results.begin() + 1)) return std::nullopt;
  require_one_bool(ctx, results[0]);
  ir::Builder inside(graph);
  const ValueId next = inside.reshape(body.outputs[0].tensor(), {});
  ir::Attrs attrs{{"body", std::shared_ptr<const ir::Graph>(body.graph)},
                  {"states", static_cast<int64_t>(states.size())},
                  {"scans", static_cast<int64_t>(parts.slices)}};
  ir::Builder& b = ctx.b;
  std::vector<ValueId> operands = {
      ctx.has(0) ? b.reshape(b.cast(ctx.in(0), DType::kI64), {})
                 : b.constant(Tensor::of<int64_t>(DType::kI64, {}, {std::numeric_limits<int64_t>::max()})),
      ctx.has(1) ? b.reshape(ctx.in(1), {}) : b.scalar(DType::kBool, 1)};
  if (parts.slices > 0) {
    const bool endless = next == graph.inputs()[1].value || is_true(graph, next);
    if (!endless || !ctx.has(0)) return std::nullopt;
    const bool starts = !ctx.has(1) || truth(ctx.constant(1));
    attrs.set("trip", starts ? std::max<int64_t>(0, ctx.constant_int(0)) : int64_t{0});
  }
  if (!attrs.has("trip") && ctx.has(0) && ctx.try_constant(0)) {  // lets whoever folds constants see that the loop ends
    attrs.set("trip", std::max<int64_t>(0, ctx.constant_int(0)));
  }
  graph.output("condition", next);
  for (size_t i = 1; i < body.outputs.size(); ++i) graph.output(fmt::format("result{}", i), body.outputs[i].tensor());
  for (const Value& v : parts.states) operands.push_back(v.tensor());
  operands.insert(operands.end(), body.captured.begin(), body.captured.end());
  const auto values = b.emit_all(Op::kLoop, std::move(operands), std::move(attrs));
  return std::vector<Value>(values.begin(), values.end());
}

// Whether a body hands its condition on as it is, so that only the trip count ends the loop.
bool hands_condition_on(const GraphProto& body) {
  std::string_view name = body.outputs[0].name;
  for (auto node = body.nodes.rbegin(); node != body.nodes.rend(); ++node) {
    const bool is_copy = node->op_type == "Identity" && node->domain.empty() && node->inputs.size() == 1;
    if (is_copy && node->outputs.size() == 1 && node->outputs[0] == name) name = node->inputs[0];
  }
  return name == body.inputs[1].name;
}

// Repeats the body in the graph itself. The number of iterations must be known.
std::vector<Value> unroll_loop(NodeContext& ctx, const LoopParts& parts) {
  const int64_t trip = ctx.has(0) ? ctx.constant_int(0) : std::numeric_limits<int64_t>::max();
  bool running = !ctx.has(1) || truth(ctx.constant(1));
  std::vector<Value> states = parts.states;
  std::vector<std::vector<ValueId>> slices(parts.slices);
  // A loop that is known to be too long is refused before its second iteration: thousands of them take seconds.
  const bool is_counted = hands_condition_on(parts.body);
  const size_t before = ctx.b.graph().nodes().size();
  for (int64_t i = 0; running && i < trip; ++i) {
    if (i == kMostUnrolled || (is_counted && trip > kMostUnrolled)) {
      ctx.unsupported(fmt::format("the loop would have to be unrolled more than {} times", kMostUnrolled));
    }
    const auto nodes = static_cast<int64_t>(ctx.b.graph().nodes().size() - before);
    if (i > 0 && (is_counted ? nodes / i * trip : nodes) > kMostUnrolledNodes) {
      ctx.unsupported(fmt::format("the loop would have to be unrolled into more than {} nodes", kMostUnrolledNodes));
    }
    std::vector<Value> inputs = {ctx.b.constant(Tensor::of<int64_t>(DType::kI64, {}, {i})),
                                 ctx.b.scalar(DType::kBool, 1)};
    inputs.insert(inputs.end(), states.begin(), states.end());
    std::vector<Value> results = ctx.inline_graph(parts.body, inputs);
    HEDDLE_CHECK(results.size() == 1 + states.size() + slices.size(), "the body changed");
    for (size_t s = 0; s < states.size(); ++s) states[s] = results[1 + s];
    for (size_t s = 0; s < slices.size(); ++s) {
      const Value& slice = results[1 + states.size() + s];
      if (!slice.is_tensor()) ctx.unsupported("a loop stacks values that are not tensors");
      Shape shape = ctx.b.shape(slice.tensor());
      shape.insert(shape.begin(), 1);
      slices[s].push_back(ctx.b.reshape(slice.tensor(), std::move(shape)));
    }
    if (!results[0].is_tensor()) ctx.invalid("the body's condition is not a tensor");
    require_one_bool(ctx, ctx.b.type(results[0].tensor()));
    running = i + 1 < trip && truth(ctx.constant_of(results[0].tensor()));
  }
  for (const auto& stack : slices) {
    if (stack.empty()) ctx.unsupported("a loop that stacks slices runs no iteration: their shape is not known");
    states.emplace_back(ctx.b.concat(stack, 0));
  }
  return states;
}

void lower_loop(NodeContext& ctx) {
  const LoopParts parts = loop_parts(ctx);
  std::optional<std::vector<Value>> results = emit_loop(ctx, parts);
  if (!results) results = unroll_loop(ctx, parts);
  for (size_t i = 0; i < ctx.output_count(); ++i) {
    if (ctx.wants(i)) ctx.set(i, (*results)[i]);
  }
}

// ---- Scan

// The nodes of `from` appended to `to`, with the given values for its parameters. Returns the values of `wanted`.
std::vector<ValueId> append(const ir::Graph& from, ir::Graph& to, std::span<const ValueId> parameters,
                            std::span<const Value> wanted) {
  std::vector<ValueId> map(from.value_count(), 0);
  for (size_t i = 0; i < from.inputs().size(); ++i) map[from.inputs()[i].value] = parameters[i];
  for (const ir::Node& node : from.nodes()) {
    if (node.op == Op::kParameter) continue;
    std::vector<ValueId> inputs;
    for (ValueId v : node.inputs) inputs.push_back(map[v]);
    std::vector<ir::OriginId> origins;
    for (ir::OriginId id : node.origins) origins.push_back(to.origin(from.origin(id)));
    const ir::NodeId id = to.add(node.op, std::move(inputs), node.attrs, std::move(origins));
    for (size_t i = 0; i < node.outputs.size(); ++i) map[node.outputs[i]] = to.node(id).outputs[i];
  }
  std::vector<ValueId> results;
  for (const Value& v : wanted) results.push_back(map[v.tensor()]);
  return results;
}

// Moves a dimension to another place.
ValueId move_dim(ir::Builder& b, ValueId x, int64_t from, int64_t to) {
  Ints perm;
  for (int64_t d = 0; d < b.rank(x); ++d) {
    if (d != from) perm.push_back(d);
  }
  perm.insert(perm.begin() + to, from);
  return b.transpose(x, std::move(perm));
}

struct ScanParts {
  const GraphProto& body;
  std::vector<ValueId> states, sequences;  // sequences run along dimension 0, in scan order
  size_t slices = 0;
  int64_t steps = 0;
};

std::vector<ValueId> emit_scan(NodeContext& ctx, const ScanParts& parts) {
  ir::Builder& b = ctx.b;
  std::vector<TensorType> formal;
  for (ValueId v : parts.states) formal.push_back(b.type(v));
  for (ValueId v : parts.sequences) {
    TensorType slice = b.type(v);
    slice.shape.erase(slice.shape.begin());
    formal.push_back(std::move(slice));
  }
  Body body = ctx.import_body(parts.body, formal, ctx.captured_names(parts.body));
  if (!all_tensors(body.outputs)) ctx.unsupported("the body of a Scan gives values that are not tensors");
  auto graph = std::make_shared<ir::Graph>();
  const ValueId iteration = graph->parameter("iteration", {DType::kI64, {}});
  const ValueId condition = graph->parameter("condition", {DType::kBool, {}});
  ir::Builder inside(*graph);
  std::vector<ValueId> arguments;
  std::vector<ValueId> operands = {b.constant(Tensor::of<int64_t>(DType::kI64, {}, {parts.steps})),
                                   b.scalar(DType::kBool, 1)};
  for (size_t i = 0; i < parts.states.size(); ++i) {
    arguments.push_back(graph->parameter(fmt::format("state{}", i), formal[i]));
    operands.push_back(parts.states[i]);
  }
  for (size_t i = 0; i < parts.sequences.size(); ++i) {
    const ValueId whole = graph->parameter(fmt::format("sequence{}", i), b.type(parts.sequences[i]));
    arguments.push_back(inside.gather(whole, iteration, 0));
    operands.push_back(parts.sequences[i]);
  }
  for (size_t i = 0; i < body.captured.size(); ++i) {
    arguments.push_back(graph->parameter(fmt::format("captured{}", i), b.type(body.captured[i])));
    operands.push_back(body.captured[i]);
  }
  const std::vector<ValueId> results = append(*body.graph, *graph, arguments, body.outputs);
  graph->output("condition_out", condition);
  for (size_t i = 0; i < results.size(); ++i) graph->output(fmt::format("result{}", i), results[i]);
  return b.emit_all(Op::kLoop, std::move(operands),
                    {{"body", std::shared_ptr<const ir::Graph>(graph)},
                     {"states", static_cast<int64_t>(parts.states.size())},
                     {"scans", static_cast<int64_t>(parts.slices)},
                     {"trip", parts.steps}});
}

// Reads states and sequences from input `first` on; `axis` and `backward` describe each sequence.
ScanParts scan_parts(NodeContext& ctx, size_t first) {
  const int64_t sequences = ctx.attr_int("num_scan_inputs");
  const int64_t states = static_cast<int64_t>(ctx.input_count() - first) - sequences;
  ScanParts parts{ctx.attr_graph("body"), {}, {}, 0, 0};
  if (sequences < 1 || states < 0 || static_cast<int64_t>(parts.body.inputs.size()) != states + sequences ||
      static_cast<int64_t>(parts.body.outputs.size()) < states) {
    ctx.invalid(fmt::format("num_scan_inputs is {} of {} inputs; the body has {} inputs and {} outputs", sequences,
                            ctx.input_count() - first, parts.body.inputs.size(), parts.body.outputs.size()));
  }
  parts.slices = parts.body.outputs.size() - static_cast<size_t>(states);
  if (ctx.output_count() > parts.body.outputs.size()) ctx.invalid("the node has more outputs than its body");
  for (int64_t i = 0; i < states; ++i) parts.states.push_back(ctx.in(first + static_cast<size_t>(i)));
  for (int64_t i = 0; i < sequences; ++i) {
    parts.sequences.push_back(ctx.in(first + static_cast<size_t>(states + i)));
  }
  return parts;
}

// One entry per sequence or slice, zeros where the attribute is left out.
Ints per_item(const NodeContext& ctx, const char* name, size_t count) {
  Ints values = ctx.attr_ints(name, Ints(count, 0));
  if (values.size() != count) ctx.invalid(fmt::format("{} has {} entries, {} expected", name, values.size(), count));
  return values;
}

ValueId reverse_first(ir::Builder& b, ValueId x) {
  return b.emit(Op::kReverse, {x}, {{"dims", Ints{0}}});
}

void set_steps(const NodeContext& ctx, ScanParts& parts) {
  parts.steps = ctx.b.shape(parts.sequences[0])[0];
  for (ValueId v : parts.sequences) {
    if (ctx.b.shape(v)[0] != parts.steps) ctx.invalid("the sequences differ in length");
  }
}

void lower_scan(NodeContext& ctx) {
  ScanParts parts = scan_parts(ctx, 0);
  const Ints axes = per_item(ctx, "scan_input_axes", parts.sequences.size());
  const Ints directions = per_item(ctx, "scan_input_directions", parts.sequences.size());
  for (size_t i = 0; i < parts.sequences.size(); ++i) {
    ValueId& x = parts.sequences[i];
    x = move_dim(ctx.b, x, ctx.axis(axes[i], ctx.b.rank(x)), 0);
    if (directions[i] != 0) x = reverse_first(ctx.b, x);
  }
  set_steps(ctx, parts);
  const Ints out_axes = per_item(ctx, "scan_output_axes", parts.slices);
  const Ints out_directions = per_item(ctx, "scan_output_directions", parts.slices);
  const std::vector<ValueId> results = emit_scan(ctx, parts);
  for (size_t i = 0; i < ctx.output_count(); ++i) {
    if (!ctx.wants(i)) continue;
    ValueId value = results[i];
    if (i >= parts.states.size()) {
      const size_t slice = i - parts.states.size();
      if (out_directions[slice] != 0) value = reverse_first(ctx.b, value);
      value = move_dim(ctx.b, value, 0, ctx.axis(out_axes[slice], ctx.b.rank(value)));
    }
    ctx.set(i, value);
  }
}

// Opset 8: everything has a leading batch dimension, each entry of which is scanned by itself.
void lower_scan_batched(NodeContext& ctx) {
  if (ctx.has(0)) ctx.unsupported("sequence_lens of Scan-8 is not supported");
  const ScanParts all = scan_parts(ctx, 1);
  const Ints directions = per_item(ctx, "directions", all.sequences.size());
  const auto entry = [&](ValueId v, int64_t n) {
    const Shape shape = ctx.b.shape(v);
    if (shape.empty()) ctx.invalid("an input has no batch dimension");
    return ctx.b.reshape(ctx.b.slice_dim(v, 0, n, n + 1), Shape(shape.begin() + 1, shape.end()));
  };
  const Shape& first = ctx.b.shape(all.sequences[0]);
  if (first.size() < 2 || first[0] < 1) ctx.invalid("a sequence needs a batch and a time dimension");
  const int64_t batch = first[0];
  std::vector<std::vector<ValueId>> results(ctx.output_count());
  for (int64_t n = 0; n < batch; ++n) {
    ScanParts parts{all.body, {}, {}, all.slices, 0};
    for (ValueId v : all.states) parts.states.push_back(entry(v, n));
    for (size_t i = 0; i < all.sequences.size(); ++i) {
      const ValueId x = entry(all.sequences[i], n);
      if (ctx.b.rank(x) < 1) ctx.invalid("a sequence has no time dimension");
      parts.sequences.push_back(directions[i] != 0 ? reverse_first(ctx.b, x) : x);
    }
    set_steps(ctx, parts);
    const std::vector<ValueId> values = emit_scan(ctx, parts);
    for (size_t i = 0; i < results.size(); ++i) {
      Shape shape = ctx.b.shape(values[i]);
      shape.insert(shape.begin(), 1);
      results[i].push_back(ctx.b.reshape(values[i], std::move(shape)));
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (ctx.wants(i)) ctx.set(i, ctx.b.concat(results[i], 0));
  }
}

}  // namespace

std::span<const OpHandler> control_ops() {
  static constexpr std::array kHandlers = {
      OpHandler{"", "If", 1, kNewestOpset, lower_if},
      OpHandler{"", "Loop", 1, kNewestOpset, lower_loop},
      OpHandler{"", "Scan", 8, 8, lower_scan_batched},
      OpHandler{"", "Scan", 9, kNewestOpset, lower_scan},
  };
  return kHandlers;
}

}  // namespace heddle::onnx
