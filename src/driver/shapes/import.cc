#include "driver/shapes/import.h"

#include <algorithm>

#include "base/check.h"
#include "base/file/file.h"
#include "base/near_miss.h"
#include "driver/shapes/output_parts.h"
#include "ir/text/text.h"
#include "ir/tile_call.h"
#include "ir/verify.h"

namespace heddle::driver {
namespace {

// Throws kInvalidInput.
const ir::TensorType& type_of_input(const std::string& path, const ir::Graph& graph, const std::string& name) {
  const auto& inputs = graph.inputs();
  const auto port = std::find_if(inputs.begin(), inputs.end(), [&](const auto& input) { return input.name == name; });
  if (port != inputs.end()) return graph.type(port->value);
  std::vector<std::string_view> known;
  for (const ir::Graph::Port& input : inputs) known.push_back(input.name);
  fail(ErrorCode::kInvalidInput, fmt::format("{}: input {}", path, name), "the graph has no such input",
       did_you_mean(name, known) + "Name one of its parameters");
}

void check_shapes(const std::string& path, const ir::Graph& graph, const std::map<std::string, Shape>& wanted) {
  for (const auto& [name, shape] : wanted) {
    const ir::TensorType& type = type_of_input(path, graph, name);
    if (type.shape == shape) continue;
    fail(ErrorCode::kInvalidInput, fmt::format("{}: input {}", path, name),
         fmt::format("its shape is to be {}, the graph says {}", to_string(shape), to_string(type.shape)),
         "Shapes of textual IR are fixed: change the file");
  }
}

void add_programs(const ir::Graph& graph, Hasher& hasher) {
  for (const ir::Node& node : graph.nodes()) {
    if (ir::calls_tile_program(node)) hasher.add(node.attrs.text("program")).add(node.attrs.text("results"));
    for (const auto& [name, attr] : node.attrs) {
      if (const auto* body = std::get_if<std::shared_ptr<const ir::Graph>>(&attr)) add_programs(**body, hasher);
    }
  }
}

// `from` with constants in place of the inputs that `values` names.
ir::Graph with_constants(const ir::Graph& from, const std::map<std::string, Tensor>& values) {
  ir::Graph to;
  to.adopt_origins(from);
  std::vector<ir::ValueId> map(from.value_count());
  std::vector<int32_t> positions;  // of from's inputs in to's
  for (const ir::Node& node : from.nodes()) {
    if (node.op == ir::Op::kParameter) {
      const auto value = values.find(from.inputs()[positions.size()].name);
      positions.push_back(value == values.end() ? static_cast<int32_t>(to.inputs().size()) : ir::Graph::kNoAlias);
      map[node.outputs[0]] = value == values.end() ? to.parameter(node.attrs) : to.constant(value->second);
      continue;
    }
    std::vector<ir::ValueId> inputs;
    for (const ir::ValueId v : node.inputs) inputs.push_back(map[v]);
    const ir::NodeId made = to.add(node.op, std::move(inputs), node.attrs, node.origins);
    for (size_t i = 0; i < node.outputs.size(); ++i) map[node.outputs[i]] = to.node(made).outputs[i];
  }
  for (const ir::Graph::Port& port : from.outputs()) {
    const bool aliases = port.alias != ir::Graph::kNoAlias;
    to.output(port.name, map[port.value], aliases ? positions[static_cast<size_t>(port.alias)] : port.alias);
  }
  return to;
}

}  // namespace

namespace {

void bind_constants(const std::string& path, const CompileOptions& options, ir::Graph& graph) {
  if (options.constants.empty()) return;
  for (const auto& [name, value] : options.constants) {
    const ir::TensorType& type = type_of_input(path, graph, name);
    if (type.dtype == value.dtype() && type.shape == value.shape()) continue;
    fail(ErrorCode::kInvalidInput, fmt::format("{}: input {}", path, name),
         fmt::format("its constant is {}{}, the graph says {}", to_string(value.dtype()), to_string(value.shape()),
                     ir::to_string(type)),
         "Convert the constant");
  }
  graph = with_constants(graph, options.constants);
}

// Without the inputs that CompileOptions::rows adds.
template <typename T>
std::map<std::string, T> of_model(std::map<std::string, T> by_name, const CompileOptions& options) {
  for (const auto& [output, input] : options.rows) by_name.erase(input);
  return by_name;
}

}  // namespace

void change_interface(const std::string& path, const CompileOptions& options, ir::Graph& graph) {
  bind_constants(path, options, graph);
  keep_appended(path, options, graph);
  select_rows(path, options, graph);
}

Hash128 operators_hash(const std::string& path, const CompileOptions& options) {
  Hasher hasher;
  if (!options.operators.empty() && !is_ir_file(path)) add_programs(import_file(path, options).graph, hasher);
  return hasher.finish();
}

bool is_ir_file(const std::string& path) {
  return path.ends_with(".hir");
}

onnx::ImportOptions import_options(const CompileOptions& options) {
  return {.shapes = of_model(options.shapes, options),
          .values = of_model(options.values, options),
          .absent = {},
          .operators = options.operators,
          .links = options.external_data_links ? onnx::DataLinks::kFollow : onnx::DataLinks::kRefuse,
          .limits = options.limits};
}

onnx::Imported import_file(const std::string& path, const CompileOptions& options) {
  if (!is_ir_file(path)) {
    onnx::Imported imported = onnx::import_model(path, import_options(options));
    change_interface(path, options, imported.graph);
    return imported;
  }
  onnx::Imported imported{ir::parse(MappedFile::read(path)->text()), {}, {}, {}, {}, {}, {}, {}};
  ir::verify(imported.graph);
  check_shapes(path, imported.graph, of_model(options.shapes, options));
  change_interface(path, options, imported.graph);
  for (const ir::Graph::Port& port : imported.graph.outputs()) {
    imported.outputs.push_back({port.name, onnx::OutputInfo::Kind::kTensor, {}, {}});
  }
  return imported;
}

}  // namespace heddle::driver
