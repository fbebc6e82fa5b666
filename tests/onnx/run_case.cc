#include "run_case.h"

#include <exception>

#include "base/check.h"
#include "compare.h"
#include "ir/reference/eval.h"

namespace heddle::node_tests {
namespace {

void flatten(const std::string& name, const TestValue& value, onnx::ImportOptions& options) {
  switch (value.kind) {
    case TestValue::Kind::kTensor:
      options.shapes[name] = value.tensor.shape();
      options.values[name] = value.tensor;
      break;
    case TestValue::Kind::kSequence:
      for (size_t i = 0; i < value.items.size(); ++i) flatten(fmt::format("{}.{}", name, i), value.items[i], options);
      break;
    case TestValue::Kind::kNone:
      options.absent.insert(name);
  }
}

std::map<std::string, Tensor> evaluate(const ir::Graph& graph, const onnx::ImportOptions& options) {
  std::vector<ir::Array> inputs;
  for (const auto& port : graph.inputs()) inputs.push_back(ir::to_array(options.values.at(port.name)));
  const auto results = ir::evaluate(graph, std::move(inputs), {.round = true, .observe = {}});
  std::map<std::string, Tensor> outputs;
  for (size_t i = 0; i < results.size(); ++i) outputs[graph.outputs()[i].name] = ir::to_tensor(results[i]);
  return outputs;
}

TestValue assemble(const onnx::OutputInfo& info, const std::map<std::string, Tensor>& tensors) {
  TestValue value;
  switch (info.kind) {
    case onnx::OutputInfo::Kind::kTensor:
      value.kind = TestValue::Kind::kTensor;
      value.tensor = tensors.at(info.name);
      break;
    case onnx::OutputInfo::Kind::kStrings:
      value.kind = TestValue::Kind::kTensor;
      value.tensor = info.strings;
      break;
    case onnx::OutputInfo::Kind::kSequence:
      value.kind = TestValue::Kind::kSequence;
      for (const auto& item : info.items) value.items.push_back(assemble(item, tensors));
      break;
    case onnx::OutputInfo::Kind::kNone:
      break;
  }
  return value;
}

Verdict compare(const NodeCase& test, const std::vector<TestValue>& outputs) {
  const bool values = test.reason.empty();
  for (size_t i = 0; i < test.outputs.size(); ++i) {
    const std::string text = difference(outputs[i], test.outputs[i], values);
    if (!text.empty()) return {Outcome::kWrong, fmt::format("{}: {}", test.output_names[i], text)};
  }
  return {values ? Outcome::kPassed : Outcome::kRandom, {}};
}

}  // namespace

ImportedCase import_case(NodeCase test) {
  ImportedCase result;
  for (size_t i = 0; i < test.inputs.size(); ++i) flatten(test.input_names[i], test.inputs[i], result.options);
  result.model = onnx::import_model(test.model_path, result.options);
  result.test = std::move(test);
  return result;
}

Verdict check_outputs(const ImportedCase& imported, const std::map<std::string, Tensor>& tensors) {
  std::vector<TestValue> outputs;
  for (const onnx::OutputInfo& info : imported.model.outputs) outputs.push_back(assemble(info, tensors));
  return compare(imported.test, outputs);
}

Verdict guarded(const std::function<Verdict()>& run) {
  try {
    return run();
  } catch (const Error& error) {
    const bool refused = error.code() == ErrorCode::kUnsupportedOperator ||
                         error.code() == ErrorCode::kUnsupportedType || error.code() == ErrorCode::kUnknownShape;
    return {refused ? Outcome::kRefused : Outcome::kError, error.what()};
  } catch (const std::exception& error) {
    return {Outcome::kError, std::string("not an error of Heddle: ") + error.what()};
  }
}

void run_reference(const std::string& data, std::span<const std::string> folders, const Report& report) {
  for (size_t i = 0; i < folders.size(); ++i) {
    std::string op = "(unknown)";
    const Verdict verdict = guarded([&] {
      NodeCase test = read_case(data, folders[i]);
      op = test.op;
      const ImportedCase imported = import_case(std::move(test));
      return check_outputs(imported, evaluate(imported.model.graph, imported.options));
    });
    report(i, op, verdict);
  }
}

}  // namespace heddle::node_tests
