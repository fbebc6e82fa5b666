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
  // Of an output: the input in whose memory it may lie (CompileOptions::alias); "": none.
  std::string alias = {};
};

// What an attribute of a node may be for an operator of the caller's.
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

// What computes such a node: launches of kernels of the tile language, as heddle.tile.operator of the Python package
// writes them (docs/design/tile-language.md, "Programs"), and the types of the outputs, whose names mean nothing.
struct OperatorProgram {
  std::string text;
  std::vector<PortInfo> outputs;
};

// Asked once for each node and set of shapes, on the thread that compiles. What it throws ends the import, and has to
// be an Error.
using Operator = std::function<OperatorProgram(const OperatorNode&)>;

}  // namespace heddle
