#pragma once

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/onnx/importer.h"
#include "heddle/tensor.h"
#include "ir/reference/array.h"

// Small ONNX models made in memory.
namespace heddle::onnx {

struct GraphSpec;

using AttrSpec = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                              std::vector<std::string>, Tensor, GraphSpec>;

struct NodeSpec {
  std::string op;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, AttrSpec> attributes = {};
  std::string domain = {};
};

struct PortSpec {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape = {};  // an extent of -1 is symbolic
};

struct GraphSpec {
  std::vector<NodeSpec> nodes;
  std::vector<PortSpec> inputs;
  std::vector<std::string> outputs;  // types are left to the importer
  std::map<std::string, Tensor> initializers = {};
  std::vector<PortSpec> values = {};  // types that the model states of values between nodes and of outputs
};

// A serialised ModelProto.
std::string model_bytes(const GraphSpec& graph, int64_t opset);

Imported import_spec(const GraphSpec& graph, int64_t opset = 21, const ImportOptions& options = {});

// Imports with all inputs as known values and evaluates (values that shapes do not depend on stay inputs). Outputs of
// sequences come as "name.0", ...
std::map<std::string, ir::Array> run_spec(const GraphSpec& graph, const std::map<std::string, Tensor>& inputs,
                                          int64_t opset = 21);

Tensor floats(Shape shape, const std::vector<float>& values);
Tensor longs(Shape shape, const std::vector<int64_t>& values);

}  // namespace heddle::onnx
