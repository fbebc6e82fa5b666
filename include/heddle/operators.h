#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/tensor.h"

namespace heddle {

struct PortInfo {
  std::string name;
  DType dtype;
  Shape shape;
  // For an output: the input whose memory it may use (CompileOptions::alias); "": none.
  std::string alias = {};
};

// The attribute types that the caller's operators can read.
using NodeAttribute =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;

// A node of a model, for one set of shapes, as the caller's operator sees it.
struct OperatorNode {
  std::string name;                             // in the model
  std::string op_type;                          // "acme::Softmax"
  std::vector<std::optional<PortInfo>> inputs;  // nothing: an optional input that is not given
  size_t outputs = 0;
  std::map<std::string, NodeAttribute> attributes;
};

// The computation of such a node: launches of tile-language kernels, as heddle.tile.operator of the Python package
// writes them (docs/design/tile-language.md, "Programs"), and the types of the outputs. The outputs' names are ignored.
struct OperatorProgram {
  std::string text;
  std::vector<PortInfo> outputs;
};

// Called once for each node and set of shapes, on the compiling thread. It may throw only an Error, which ends the
// import.
using Operator = std::function<OperatorProgram(const OperatorNode&)>;

}  // namespace heddle
