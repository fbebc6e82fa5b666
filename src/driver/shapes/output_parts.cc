#include "driver/shapes/output_parts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "base/near_miss.h"
#include "driver/shapes/pattern.h"
#include "heddle/error.h"
#include "ir/builder.h"

namespace heddle::driver {
namespace {

using ir::Graph;
using ir::ValueId;

const Graph::Port* find_port(const std::vector<Graph::Port>& ports, const std::string& name) {
  const auto found = std::find_if(ports.begin(), ports.end(), [&](const auto& port) { return port.name == name; });
  return found == ports.end() ? nullptr : &*found;
}

[[noreturn]] void refuse(const std::string& path, const std::string& port, const std::string& why,
                         const std::string& remedy) {
  fail(ErrorCode::kInvalidInput, fmt::format("{}: {}", path, port), why, remedy);
}

[[noreturn]] void refuse_unknown(const std::string& path, const std::vector<Graph::Port>& ports, const char* kind,
                                 const std::string& name) {
  std::vector<std::string_view> known;
  for (const Graph::Port& port : ports) known.push_back(port.name);
  refuse(path, fmt::format("{} {}", kind, name), fmt::format("the model has no such {}", kind),
         did_you_mean(name, known) + fmt::format("Name one of its {}s", kind));
}

// The shape of the input that names rows of this output.
Shape shape_of_rows(const std::string& path, const CompileOptions& options, const Graph& graph,
                    const std::string& output, const std::string& input) {
  const Graph::Port* port = find_port(graph.outputs(), output);
  if (port == nullptr) refuse_unknown(path, graph.outputs(), "output", output);
  const Shape& shape = graph.shape(port->value);
  if (shape.size() < 2 || element_count(shape) == 0)
    refuse(path, "output " + output,
           fmt::format("rows of it are to be selected, and its shape is {}", to_string(shape)),
           "Select rows of an output [batch, rows, ...]");
  if (find_port(graph.inputs(), input) != nullptr)
    refuse(path, "input " + input,
           fmt::format("it is to name rows of {}, and the model has an input of this name", output),
           "Choose another name");
  const Shape wanted = {shape[0]};
  const auto given = options.shapes.find(input);
  if (given != options.shapes.end() && given->second != wanted)
    refuse(path, "input " + input,
           fmt::format("its shape is {}, and {} has the shape {}", to_string(given->second), output, to_string(shape)),
           fmt::format("Give one row for each element of the batch, {}", to_string(wanted)));
  return wanted;
}

// The rows of `values` [batch, rows, ...] at `index` i64[batch, 1], as [batch, 1, ...].
ValueId rows_at(ir::Builder& b, ValueId values, ValueId index) {
  Shape shape = b.shape(values);
  if (shape[1] == 1) return values;
  shape[1] = 1;
  if (shape[0] == 1) return b.gather(values, b.reshape(index, {1}), 1);
  return b.reshape(b.emit(ir::Op::kGatherNd, {values, index}, {{"batch_dims", int64_t{1}}}), shape);
}

// The rows of `output` that `input` does not have.
ValueId rows_behind(const std::string& path, ir::Builder& b, const Graph::Port& output, const Graph::Port& input) {
  const Shape all = b.shape(output.value), earlier = b.shape(input.value);
  std::optional<int64_t> dim;
  bool extends = all.size() == earlier.size() && b.dtype(output.value) == b.dtype(input.value);
  for (size_t d = 0; extends && d < all.size(); ++d) {
    if (all[d] == earlier[d]) continue;
    extends = !dim && all[d] > earlier[d];
    dim = static_cast<int64_t>(d);
  }
  if (!extends || !dim)
    refuse(path, "output " + output.name,
           fmt::format("it is {} and does not append rows to {}, which is {}", to_string(b.type(output.value)),
                       input.name, to_string(b.type(input.value))),
           "Name outputs that are an input with rows appended");
  return b.slice_dim(output.value, *dim, earlier[static_cast<size_t>(*dim)], all[static_cast<size_t>(*dim)]);
}

}  // namespace

void select_rows(const std::string& path, const CompileOptions& options, Graph& graph) {
  if (options.rows.empty()) return;
  Graph to;
  to.adopt_origins(graph);
  ir::Builder b(to);
  std::vector<ValueId> map(graph.value_count());
  for (const Graph::Port& input : graph.inputs()) map[input.value] = to.parameter(graph.producer(input.value).attrs);
  // The indices come before all nodes that the selection may pass.
  std::map<std::string, ValueId> indices;        // by output
  std::map<std::string, ValueId> given_by_name;  // the new inputs
  for (const auto& [output, input] : options.rows) {
    const Shape shape = shape_of_rows(path, options, graph, output, input);
    const Graph::Port* port = find_port(graph.outputs(), output);
    const auto [known, is_new] = given_by_name.try_emplace(input);
    if (is_new) known->second = to.parameter(input, {DType::kI64, shape});
    const ValueId given = known->second;
    if (to.shape(given) != shape)
      refuse(path, "input " + input, "it is to name rows of outputs of different batches", "Choose another name");
    const auto last = static_cast<double>(graph.shape(port->value)[1] - 1);
    const ValueId index = b.binary(ir::Op::kMin, b.binary(ir::Op::kMax, given, 0.0), last);
    indices[output] = b.reshape(index, {shape[0], 1});
  }
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == ir::Op::kParameter) continue;
    std::vector<ValueId> inputs;
    for (const ValueId v : node.inputs) inputs.push_back(map[v]);
    const ir::NodeId made = to.add(node.op, std::move(inputs), node.attrs, node.origins);
    for (size_t i = 0; i < node.outputs.size(); ++i) map[node.outputs[i]] = to.node(made).outputs[i];
  }
  for (const Graph::Port& port : graph.outputs()) {
    const auto index = indices.find(port.name);
    b.set_origins(graph.producer(port.value).origins);
    to.output(port.name, index == indices.end() ? map[port.value] : rows_at(b, map[port.value], index->second),
              index == indices.end() ? port.alias : Graph::kNoAlias);
  }
  graph = std::move(to);
}

void keep_appended(const std::string& path, const CompileOptions& options, Graph& graph) {
  if (options.appended.empty()) return;
  std::map<std::string, std::string> inputs;  // by output
  for (const auto& [output, input] : options.appended) {
    if (!have_one_star_each(output, input))
      refuse(path, "appended", fmt::format("\"{}\" and \"{}\" do not have one * each", output, input),
             "Write for example present.*=past.*, where the stars stand for the same text");
    bool is_known = false;
    for (const Graph::Port& port : graph.outputs()) {
      const auto star = star_of(output, port.name);
      if (!star) continue;
      if (!inputs.emplace(port.name, with_star(input, *star)).second)
        refuse(path, "output " + port.name, "two entries of appended name it", "Name each output once");
      is_known = true;
    }
    if (!is_known) refuse_unknown(path, graph.outputs(), "output", output);
  }
  ir::Builder b(graph);
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Graph::Port port = graph.outputs()[i];
    const auto input = inputs.find(port.name);
    if (input == inputs.end()) continue;
    const Graph::Port* from = find_port(graph.inputs(), input->second);
    if (from == nullptr) refuse_unknown(path, graph.inputs(), "input", input->second);
    b.set_origins(graph.producer(port.value).origins);
    const ValueId rows = rows_behind(path, b, port, *from);
    graph.set_alias(i, Graph::kNoAlias);  // the rows do not fit the input's shape
    graph.set_output(i, rows);
  }
}

}  // namespace heddle::driver
