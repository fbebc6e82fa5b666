#include "driver/shapes/import.h"

#include <algorithm>

#include "base/check.h"
#include "base/file/file.h"
#include "base/near_miss.h"
#include "ir/text/text.h"
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

}  // namespace

bool is_ir_file(const std::string& path) {
  return path.ends_with(".hir");
}

onnx::ImportOptions import_options(const CompileOptions& options) {
  return {.shapes = options.shapes,
          .values = options.values,
          .absent = {},
          .links = options.external_data_links ? onnx::DataLinks::kFollow : onnx::DataLinks::kRefuse,
          .limits = options.limits};
}

onnx::Imported import_file(const std::string& path, const CompileOptions& options) {
  if (!is_ir_file(path)) {
    return onnx::import_model(path, import_options(options));
  }
  onnx::Imported imported{ir::parse(MappedFile::read(path)->text()), {}, {}, {}, {}, {}};
  ir::verify(imported.graph);
  check_shapes(path, imported.graph, options.shapes);
  for (const ir::Graph::Port& port : imported.graph.outputs()) {
    imported.outputs.push_back({port.name, onnx::OutputInfo::Kind::kTensor, {}, {}});
  }
  return imported;
}

}  // namespace heddle::driver
