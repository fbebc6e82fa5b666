#include "driver/plan/reference.h"

#include <fmt/format.h>

#include <map>

#include "base/check.h"
#include "driver/tile/tile_group.h"
#include "ir/reference/eval.h"
#include "ir/text/text.h"

namespace heddle::driver {
namespace {

[[noreturn]] void damaged(std::string why) {
  fail(ErrorCode::kDamagedArtefact, "plan", std::move(why), "Compile the model again");
}

ir::Graph parse(const std::string& text) {
  try {
    return ir::parse(text);
  } catch (const Error& error) {
    damaged(fmt::format("a reference step: {}: {}", error.where(), error.why()));
  }
}

class ReferenceInterpreter : public runtime::Interpreter {
 public:
  std::shared_ptr<const void> prepare(const std::string& text, std::span<const runtime::ValueType> parameters,
                                      std::span<const runtime::ValueType> results) const override {
    auto graph = std::make_shared<const ir::Graph>(parse(text));
    bool fits = graph->inputs().size() == parameters.size() && graph->outputs().size() == results.size();
    for (size_t i = 0; fits && i < parameters.size(); ++i) {
      const ir::TensorType& type = graph->type(graph->inputs()[i].value);
      fits = type.dtype == parameters[i].dtype && type.shape == parameters[i].shape;
    }
    for (size_t i = 0; fits && i < results.size(); ++i) {
      const ir::TensorType& type = graph->type(graph->outputs()[i].value);
      fits = type.dtype == results[i].dtype && element_count(type.shape) == element_count(results[i].shape);
    }
    if (!fits) damaged("a reference step does not fit its buffers");
    return graph;
  }

  std::vector<Tensor> run(const void* prepared, std::vector<Tensor> parameters) const override {
    const auto& graph = *static_cast<const ir::Graph*>(prepared);
    std::vector<ir::Array> inputs;
    inputs.reserve(parameters.size());
    for (const Tensor& parameter : parameters) inputs.push_back(ir::to_array(parameter));
    std::vector<Tensor> results;
    for (const ir::Array& result : ir::evaluate(graph, std::move(inputs), {.round = true, .observe = {}})) {
      results.push_back(ir::to_tensor(result));
    }
    return results;
  }
};

}  // namespace

std::string reference_text(const ir::Graph& graph, const ir::Group& group) {
  ir::Graph step;
  std::map<ir::ValueId, ir::ValueId> map;
  for (size_t i = 0; i < group.inputs.size(); ++i) {
    map[group.inputs[i]] = step.parameter(fmt::format("in{}", i), graph.type(group.inputs[i]));
  }
  for (const ir::NodeId id : group.nodes) {
    const ir::Node& node = graph.node(id);
    std::vector<ir::ValueId> inputs;
    for (const ir::ValueId input : node.inputs) inputs.push_back(map.at(input));
    const ir::Node& copy = step.node(step.add(node.op, std::move(inputs), node.attrs));
    for (size_t i = 0; i < node.outputs.size(); ++i) map[node.outputs[i]] = copy.outputs[i];
  }
  for (size_t i = 0; i < group.outputs.size(); ++i) step.output(fmt::format("out{}", i), map.at(group.outputs[i]));
  return ir::print(step, {.max_constant_elements = -1, .origins = false});
}

std::shared_ptr<const runtime::Interpreter> reference_interpreter() {
  install_tile_evaluator();
  return std::make_shared<ReferenceInterpreter>();
}

}  // namespace heddle::driver
