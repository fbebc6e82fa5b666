#include "driver/shapes/guess.h"

#include <algorithm>
#include <map>

#include "base/file/file.h"
#include "driver/shapes/import.h"
#include "frontend/onnx/extents/extents.h"
#include "frontend/onnx/reader/budget.h"
#include "runtime/plan_io.h"

namespace heddle::driver {

std::vector<PortInfo> inputs_of(const runtime::Plan& plan) {
  std::vector<PortInfo> inputs;
  for (const runtime::Port& port : plan.inputs) inputs.push_back({port.name, port.dtype, port.shape, ""});
  return inputs;
}

std::vector<PortInfo> inputs_of(const ir::Graph& graph) {
  std::vector<PortInfo> inputs;
  for (const ir::Graph::Port& port : graph.inputs()) {
    inputs.push_back({port.name, graph.dtype(port.value), graph.shape(port.value), ""});
  }
  return inputs;
}

std::string guess_of(const std::string& path, const CompileOptions& options, const std::vector<PortInfo>& inputs) {
  if (is_ir_file(path) || runtime::is_plan_file(path)) return {};
  const auto file = MappedFile::read(path);
  onnx::Budget budget(options.limits);
  const onnx::ModelProto model = onnx::parse_model(file->text(), file, path, budget);
  const onnx::Extents extents(model, import_options(options));
  std::map<std::string, int64_t> guesses;
  for (const onnx::OpenExtent& extent : extents.open()) {
    const auto port =
        std::find_if(inputs.begin(), inputs.end(), [&](const PortInfo& p) { return p.name == extent.input; });
    if (port == inputs.end() || static_cast<size_t>(extent.dim) >= port->shape.size()) continue;
    guesses.emplace(extent.key, port->shape[static_cast<size_t>(extent.dim)]);
  }
  return extents.describe(guesses);
}

}  // namespace heddle::driver
