#include "driver/shapes/import.h"

#include <algorithm>

#include "base/check.h"
#include "base/file/file.h"
#include "base/near_miss.h"
#include "ir/text/text.h"
#include "ir/tile_call.h"
#include "ir/verify.h"

namespace heddle::driver {
namespace {

void check_shapes(const std::string& path, const ir::Graph& graph, const std::map<std::string, Shape>& wanted) {
  for (const auto& [name, shape] : wanted) {
    const auto& inputs = graph.inputs();
    const auto port =
        std::find_if(inputs.begin(), inputs.end(), [&, &n = name](const auto& input) { return input.name == n; });
    if (port == inputs.end()) {
      std::vector<std::string_view> known;
      for (const ir::Graph::Port& input : inputs) known.push_back(input.name);
      fail(ErrorCode::kInvalidInput, fmt::format("{}: input {}", path, name), "the graph has no such input",
           did_you_mean(name, known) + "Name one of its parameters");
    }
    if (graph.shape(port->value) == shape) continue;
    fail(ErrorCode::kInvalidInput, fmt::format("{}: input {}", path, name),
         fmt::format("its shape is to be {}, the graph says {}", to_string(shape), to_string(graph.shape(port->value))),
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

}  // namespace

Hash128 operators_hash(const std::string& path, const CompileOptions& options) {
  Hasher hasher;
  if (!options.operators.empty() && !is_ir_file(path)) add_programs(import_file(path, options).graph, hasher);
  return hasher.finish();
}

bool is_ir_file(const std::string& path) {
  return path.ends_with(".hir");
}

onnx::ImportOptions import_options(const CompileOptions& options) {
  return {.shapes = options.shapes,
          .values = options.values,
          .absent = {},
          .operators = options.operators,
          .links = options.external_data_links ? onnx::DataLinks::kFollow : onnx::DataLinks::kRefuse,
          .limits = options.limits};
}

onnx::Imported import_file(const std::string& path, const CompileOptions& options) {
  if (!is_ir_file(path)) {
    return onnx::import_model(path, import_options(options));
  }
  onnx::Imported imported{ir::parse(MappedFile::read(path)->text()), {}, {}, {}, {}, {}, {}, {}};
  ir::verify(imported.graph);
  check_shapes(path, imported.graph, options.shapes);
  for (const ir::Graph::Port& port : imported.graph.outputs()) {
    imported.outputs.push_back({port.name, onnx::OutputInfo::Kind::kTensor, {}, {}});
  }
  return imported;
}

}  // namespace heddle::driver
