// Edits of nodes, edges, subgraphs and functions.
#include <algorithm>
#include <set>

#include "tests/fuzz/hostile/onnx_edits.h"

namespace heddle::fuzz {
namespace {

WireField* random_field(WireMessage& message, uint64_t number, Rng& rng) {
  const std::vector<WireField*> fields = all_fields(message, number);
  return fields.empty() ? nullptr : rng.pick(fields);
}

WireField attribute_int(const std::string& name, uint64_t value) {
  return message_field(field::kNodeAttribute,
                       {text_field(field::kAttributeName, name), int_field(field::kAttributeInt, value),
                        int_field(field::kAttributeType, 2)});
}

WireField attribute_graph(const std::string& name, WireMessage graph) {
  return message_field(field::kNodeAttribute,
                       {text_field(field::kAttributeName, name),
                        message_field(field::kAttributeGraph, std::move(graph)), int_field(field::kAttributeType, 5)});
}

WireMessage node_of(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs) {
  WireMessage node = {text_field(field::kNodeOp, op)};
  for (const std::string& name : inputs) node.push_back(text_field(field::kNodeInput, name));
  for (const std::string& name : outputs) node.push_back(text_field(field::kNodeOutput, name));
  return node;
}

// A graph input or output that says nothing but its name, or its type too.
WireField port(uint64_t number, const std::string& name, uint64_t type = 0, const std::vector<uint64_t>& shape = {}) {
  WireMessage value = {text_field(field::kValueName, name)};
  if (type != 0) {
    WireMessage dims;
    for (const uint64_t extent : shape) {
      dims.push_back(message_field(field::kShapeDim, {int_field(field::kDimValue, extent)}));
    }
    WireMessage tensor = {int_field(field::kElemType, type), message_field(field::kElemShape, std::move(dims))};
    WireMessage wrapped = {message_field(field::kTypeTensor, std::move(tensor))};
    value.push_back(message_field(field::kValueType, std::move(wrapped)));
  }
  return message_field(number, std::move(value));
}

WireField scalar(const std::string& name, uint64_t type, std::string raw) {
  return message_field(field::kGraphInitializer,
                       {int_field(field::kTensorType, type), text_field(field::kTensorName, name),
                        text_field(field::kTensorRaw, std::move(raw))});
}

std::string little_endian(uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::vector<std::string> texts_of(WireMessage& message, uint64_t number) {
  std::vector<std::string> texts;
  for (const WireField* f : all_fields(message, number)) texts.push_back(f->bytes);
  return texts;
}

// A node of a graph that has one, with its graph.
std::pair<WireMessage*, WireField*> graph_and_node(OnnxEditor& e) {
  for (int attempt = 0; attempt < 4; ++attempt) {
    WireMessage* graph = e.any(OnnxKind::kGraph);
    if (graph == nullptr) break;
    if (WireField* node = random_field(*graph, field::kGraphNode, e.rng); node != nullptr) return {graph, node};
  }
  return {nullptr, nullptr};
}

void insert_before(WireMessage& graph, const WireField* before, WireField added) {
  graph.insert(graph.begin() + (before - graph.data()), std::move(added));
}

}  // namespace

void OnnxPool::add(WireMessage& model) {
  OnnxParts parts = collect_onnx(model);
  for (WireMessage* node : of(parts, OnnxKind::kNode)) {
    const std::string op = text_of(*node, field::kNodeOp);
    if (!attributes_of.contains(op)) operators.emplace_back(op, text_of(*node, field::kNodeDomain));
    for (const WireField* attribute : all_fields(*node, field::kNodeAttribute)) {
      std::vector<WireField>& known = attributes_of[op];
      constexpr size_t kEnough = 24;  // of one operator
      if (known.size() >= kEnough) continue;
      known.push_back(*attribute);
      attributes.push_back(*attribute);
    }
    attributes_of[op];
  }
}

std::vector<std::string> OnnxEditor::names(WireMessage& graph) {
  std::vector<std::string> names;
  for (WireField& f : graph) {
    if (f.number == field::kGraphNode) {
      for (const std::string& name : texts_of(f.fields, field::kNodeOutput)) names.push_back(name);
    } else if (f.number == field::kGraphInitializer) {
      names.push_back(text_of(f.fields, field::kTensorName));
    } else if (f.number == field::kGraphInput) {
      names.push_back(text_of(f.fields, field::kValueName));
    }
  }
  if (names.empty()) names.emplace_back();
  return names;
}

void change_operator(OnnxEditor& e) {
  WireMessage* node = e.any(OnnxKind::kNode);
  if (node == nullptr || e.pool.operators.empty()) return;
  const auto& [op, domain] = e.rng.pick(e.pool.operators);
  set_field(*node, text_field(field::kNodeOp, op));
  set_field(*node, text_field(field::kNodeDomain, domain));
}

void change_edge(OnnxEditor& e) {
  const auto [graph, node] = graph_and_node(e);
  if (node == nullptr) return;
  std::vector<std::string> names = e.names(*graph);
  names.emplace_back();
  names.emplace_back("nowhere");
  const std::string name = e.rng.pick(names);
  WireField* input = random_field(node->fields, field::kNodeInput, e.rng);
  if (input != nullptr && e.rng.chance(0.2)) {
    node->fields.erase(node->fields.begin() + (input - node->fields.data()));
  } else if (input != nullptr && e.rng.chance(0.8)) {
    input->bytes = name;
  } else {
    node->fields.push_back(text_field(field::kNodeInput, name));
  }
}

void change_output_name(OnnxEditor& e) {
  const auto [graph, node] = graph_and_node(e);
  if (node == nullptr) return;
  std::vector<std::string> names = e.names(*graph);
  names.emplace_back();
  names.emplace_back("\x1b[31m\xff");
  const std::string name = e.rng.pick(names);
  WireField* output = random_field(node->fields, field::kNodeOutput, e.rng);
  if (output != nullptr && e.rng.chance(0.7)) {
    output->bytes = name;
  } else {
    node->fields.push_back(text_field(field::kNodeOutput, e.rng.chance(0.5) ? name : e.fresh("extra")));
  }
}

// Its readers read what it read.
void remove_node(OnnxEditor& e) {
  const auto [graph, node] = graph_and_node(e);
  if (node == nullptr) return;
  const std::string from = text_of(node->fields, field::kNodeOutput), to = text_of(node->fields, field::kNodeInput);
  graph->erase(graph->begin() + (node - graph->data()));
  if (e.rng.chance(0.3)) return;
  for (WireField* reader : all_fields(*graph, field::kGraphNode)) {
    for (WireField* input : all_fields(reader->fields, field::kNodeInput)) {
      if (input->bytes == from) input->bytes = to;
    }
  }
}

// A chain of the same node, each reading the one before it.
void repeat_node(OnnxEditor& e) {
  const auto [graph, node] = graph_and_node(e);
  if (node == nullptr) return;
  WireField* output = random_field(node->fields, field::kNodeOutput, e.rng);
  WireField* input = random_field(node->fields, field::kNodeInput, e.rng);
  if (output == nullptr || input == nullptr) return;
  const WireField original = *node;
  const std::string last = output->bytes;
  const auto at = static_cast<size_t>(node - graph->data());
  const auto in = static_cast<size_t>(input - node->fields.data()),
             out = static_cast<size_t>(output - node->fields.data());
  const int64_t count = e.rng.chance(0.9) ? e.rng.range(1, 4) : e.rng.range(5, 40);
  std::string previous = input->bytes;
  std::vector<WireField> chain;
  for (int64_t i = 0; i <= count; ++i) {
    WireField copy = original;
    for (WireField* name : all_fields(copy.fields, field::kNodeOutput)) {
      if (i < count && !name->bytes.empty()) name->bytes += e.fresh("_again") + "_" + std::to_string(i);
    }
    copy.fields[in].bytes = previous;
    previous = copy.fields[out].bytes;
    chain.push_back(std::move(copy));
  }
  graph->erase(graph->begin() + static_cast<std::ptrdiff_t>(at));
  graph->insert(graph->begin() + static_cast<std::ptrdiff_t>(at), chain.begin(), chain.end());
}

void swap_nodes(OnnxEditor& e) {
  const auto [graph, node] = graph_and_node(e);
  if (node != nullptr) std::swap(*node, *random_field(*graph, field::kGraphNode, e.rng));
}

// Two nodes of other operators read what this one does, so that results meet again: x -> f(x), g(x) -> f + g.
void share_operand(OnnxEditor& e) {
  static const std::vector<std::string> joins = {"Add", "Mul", "Sub", "Max", "Div", "Concat", "MatMul", "Where"};
  const auto [graph, node] = graph_and_node(e);
  if (node == nullptr) return;
  WireField* input = random_field(node->fields, field::kNodeInput, e.rng);
  if (input == nullptr) return;
  const std::string joined = e.fresh("joined"), other = e.rng.pick(e.names(*graph));
  WireMessage join = node_of(e.rng.pick(joins), {input->bytes, e.rng.chance(0.6) ? input->bytes : other}, {joined});
  if (e.rng.chance(0.3)) join.push_back(attribute_int("axis", static_cast<uint64_t>(e.rng.range(-2, 2))));
  input->bytes = joined;
  insert_before(*graph, node, message_field(field::kGraphNode, std::move(join)));
}

void change_outputs(OnnxEditor& e) {
  WireMessage* graph = e.any(OnnxKind::kGraph);
  if (graph == nullptr) return;
  const std::string name = e.rng.pick(e.names(*graph));
  WireField* output = random_field(*graph, field::kGraphOutput, e.rng);
  if (output != nullptr && e.rng.chance(0.3)) {
    graph->erase(graph->begin() + (output - graph->data()));
  } else {
    graph->push_back(port(field::kGraphOutput, name));
  }
}

void exchange_initializer(OnnxEditor& e) {
  WireMessage* graph = e.any(OnnxKind::kGraph);
  if (graph == nullptr) return;
  WireField* tensor = random_field(*graph, field::kGraphInitializer, e.rng);
  if (tensor != nullptr && e.rng.chance(0.5)) {
    const std::string name = text_of(tensor->fields, field::kTensorName);
    const WireField* type = first_field(tensor->fields, field::kTensorType);
    std::vector<uint64_t> shape;
    for (const WireField* dim : all_fields(tensor->fields, field::kTensorDim)) shape.push_back(dim->varint);
    WireField input = port(field::kGraphInput, name, type == nullptr ? 1 : type->varint, shape);
    if (e.rng.chance(0.8)) graph->erase(graph->begin() + (tensor - graph->data()));
    graph->push_back(std::move(input));
    return;
  }
  WireField* input = random_field(*graph, field::kGraphInput, e.rng);
  if (input == nullptr) return;
  OnnxParts parts = collect_onnx(input->fields, OnnxKind::kValueInfo);
  uint64_t type = 1, count = 1;
  WireMessage made = {text_field(field::kTensorName, text_of(input->fields, field::kValueName))};
  for (WireMessage* t : of(parts, OnnxKind::kTensorType)) {
    if (const WireField* element = first_field(*t, field::kElemType); element != nullptr) type = element->varint;
  }
  for (WireMessage* d : of(parts, OnnxKind::kDimension)) {
    const WireField* value = first_field(*d, field::kDimValue);
    const uint64_t extent = value == nullptr ? 1 : value->varint;
    made.push_back(int_field(field::kTensorDim, extent));
    count = count * extent > 4096 ? 4096 : count * extent;
  }
  made.push_back(int_field(field::kTensorType, type));
  const size_t width = type == 7 || type == 11 ? 8 : type == 2 || type == 3 || type == 9 ? 1 : type == 10 ? 2 : 4;
  std::string raw;
  for (uint64_t i = 0; i < count; ++i) raw += little_endian(type == 1 ? 0x3f800000 : i % 3).substr(0, width);
  made.push_back(text_field(field::kTensorRaw, std::move(raw)));
  graph->erase(graph->begin() + (input - graph->data()));
  graph->push_back(message_field(field::kGraphInitializer, std::move(made)));
}

void wrap_in_branch(OnnxEditor& e) {
  const auto [graph, node] = graph_and_node(e);
  if (node == nullptr) return;
  const std::vector<std::string> outputs = texts_of(node->fields, field::kNodeOutput);
  WireMessage then_graph = {*node}, else_graph;
  for (const std::string& name : outputs) {
    then_graph.push_back(port(field::kGraphOutput, name));
    else_graph.push_back(port(field::kGraphOutput, name));
  }
  if (e.rng.chance(0.5)) {
    else_graph.push_back(*node);
  } else {  // another value of perhaps another shape
    const std::string from = e.rng.pick(e.names(*graph));
    for (const std::string& name : outputs) {
      else_graph.push_back(message_field(field::kGraphNode, node_of("Identity", {from}, {name})));
    }
  }
  const std::string condition = e.fresh("condition");
  WireMessage branch = node_of("If", {condition}, outputs);
  branch.push_back(attribute_graph("then_branch", std::move(then_graph)));
  branch.push_back(attribute_graph("else_branch", std::move(else_graph)));
  node->fields = std::move(branch);
  graph->push_back(e.rng.chance(0.5) ? port(field::kGraphInput, condition, 9)
                                     : scalar(condition, 9, std::string(1, static_cast<char>(e.rng.range(0, 1)))));
}

// The node's first input is the state.
void wrap_in_loop(OnnxEditor& e) {
  const auto [graph, node] = graph_and_node(e);
  if (node == nullptr) return;
  const std::string state = text_of(node->fields, field::kNodeInput), out = text_of(node->fields, field::kNodeOutput);
  if (state.empty() || out.empty()) return;
  const std::string trip = e.fresh("trip"), in = e.fresh("state"), alive = e.fresh("alive");
  WireMessage body = {port(field::kGraphInput, e.fresh("i"), 7), port(field::kGraphInput, alive, 9),
                      port(field::kGraphInput, in)};
  WireField inner = *node;
  for (WireField* input : all_fields(inner.fields, field::kNodeInput)) {
    if (input->bytes == state) input->bytes = in;
  }
  body.push_back(std::move(inner));
  body.push_back(message_field(field::kGraphNode, node_of("Identity", {alive}, {alive + "_out"})));
  body.push_back(port(field::kGraphOutput, alive + "_out"));
  body.push_back(port(field::kGraphOutput, out));
  std::vector<std::string> results = {out};
  if (e.rng.chance(0.3)) {  // every step's value as well
    body.push_back(port(field::kGraphOutput, out));
    results.push_back(e.fresh("stacked"));
  }
  WireMessage loop = node_of("Loop", {trip, "", state}, results);
  loop.push_back(attribute_graph("body", std::move(body)));
  node->fields = std::move(loop);
  static const std::vector<uint64_t> trips = {0, 1, 2, 3, 17, 1000, 1ULL << 31, 1ULL << 40, INT64_MAX, UINT64_MAX};
  graph->push_back(e.rng.chance(0.3)
                       ? port(field::kGraphInput, trip, 7)
                       : scalar(trip, 7,
                                little_endian(e.rng.chance(0.8) ? trips[static_cast<size_t>(e.rng.range(0, 5))]
                                                                : e.rng.pick(trips))));
}

void wrap_in_function(OnnxEditor& e) {
  const auto [graph, node] = graph_and_node(e);
  if (node == nullptr) return;
  const std::string name = e.fresh("Function");
  WireMessage call =
      node_of(name, texts_of(node->fields, field::kNodeInput), texts_of(node->fields, field::kNodeOutput));
  call.push_back(text_field(field::kNodeDomain, "local"));
  WireMessage function = {text_field(field::kFunctionName, name), text_field(field::kFunctionDomain, "local")};
  std::set<std::string> seen;
  for (const std::string& input : texts_of(node->fields, field::kNodeInput)) {
    if (!input.empty() && seen.insert(input).second) function.push_back(text_field(field::kFunctionInput, input));
  }
  for (const std::string& output : texts_of(node->fields, field::kNodeOutput)) {
    function.push_back(text_field(field::kFunctionOutput, output));
  }
  WireField inner = *node;
  inner.number = field::kFunctionNode;
  function.push_back(e.rng.chance(0.05) ? message_field(field::kFunctionNode, call) : std::move(inner));
  for (const WireField* opset : all_fields(e.model, field::kModelOpset)) {
    WireField copy = *opset;
    copy.number = field::kFunctionOpset;
    function.push_back(std::move(copy));
  }
  node->fields = std::move(call);
  // `graph` and `node` lie inside of the model's fields, which grow last.
  WireMessage opset = {text_field(field::kOpsetDomain, "local"), int_field(field::kOpsetVersion, 1)};
  if (e.rng.chance(0.9)) e.model.push_back(message_field(field::kModelOpset, std::move(opset)));
  e.model.push_back(message_field(field::kModelFunction, std::move(function)));
}

// The donor's graph beside the model's, one of its inputs fed with a value of the model.
void join_donor(OnnxEditor& e) {
  WireField* graph = first_field(e.model, field::kModelGraph);
  WireField* other = first_field(e.donor, field::kModelGraph);
  if (graph == nullptr || other == nullptr) return;
  WireMessage added = other->fields;
  const std::string suffix = e.fresh("_joined");
  OnnxParts parts = collect_onnx(added, OnnxKind::kGraph);
  const auto rename = [&](WireMessage& message, uint64_t number) {
    for (WireField* name : all_fields(message, number)) {
      if (!name->bytes.empty()) name->bytes += suffix;
    }
  };
  for (WireMessage* node : of(parts, OnnxKind::kNode)) {
    rename(*node, field::kNodeInput);
    rename(*node, field::kNodeOutput);
  }
  for (WireMessage* value : of(parts, OnnxKind::kValueInfo)) rename(*value, field::kValueName);
  for (WireMessage* inner : of(parts, OnnxKind::kGraph)) {
    for (WireField* tensor : all_fields(*inner, field::kGraphInitializer)) rename(tensor->fields, field::kTensorName);
  }
  const std::string source = e.rng.pick(e.names(graph->fields));
  if (WireField* input = random_field(added, field::kGraphInput, e.rng); input != nullptr && e.rng.chance(0.9)) {
    const std::string fed = text_of(input->fields, field::kValueName);
    added.erase(added.begin() + (input - added.data()));
    for (WireMessage* node : of(parts = collect_onnx(added, OnnxKind::kGraph), OnnxKind::kNode)) {
      for (WireField* read : all_fields(*node, field::kNodeInput)) {
        if (read->bytes == fed) read->bytes = source;
      }
    }
  }
  std::erase_if(added, [](const WireField& f) { return f.wire != 2 || f.fields.empty(); });  // name and documentation
  graph->fields.insert(graph->fields.end(), added.begin(), added.end());
}

void edit_onnx(WireMessage& model, WireMessage& donor, const OnnxPool& pool, Rng& rng, int serial) {
  struct Edit {
    int weight;
    void (*apply)(OnnxEditor&);
  };
  static constexpr Edit kEdits[] = {{8, edit_attribute},       {5, move_attribute},  {5, edit_tensor_shape},
                                    {6, edit_tensor_data},     {2, make_external},   {3, edit_value_type},
                                    {6, edit_dimension},       {7, change_extent},   {5, change_element_type},
                                    {2, edit_opset},           {4, change_operator}, {5, change_edge},
                                    {2, change_output_name},   {2, remove_node},     {4, repeat_node},
                                    {1, swap_nodes},           {5, share_operand},   {2, change_outputs},
                                    {4, exchange_initializer}, {4, wrap_in_branch},  {4, wrap_in_loop},
                                    {3, wrap_in_function},     {9, join_donor}};
  int64_t total = 0;
  for (const Edit& edit : kEdits) total += edit.weight;
  int64_t drawn = rng.range(0, total - 1);
  OnnxEditor editor{model, donor, pool, rng, serial, collect_onnx(model)};
  for (const Edit& edit : kEdits) {
    drawn -= edit.weight;
    if (drawn < 0) return edit.apply(editor);
  }
}

}  // namespace heddle::fuzz
