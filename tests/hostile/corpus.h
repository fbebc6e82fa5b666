#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/error.h"
#include "tests/frontend/wire_writer.h"

// Models that an attacker, a broken exporter or a bad disk might hand over, as generators, each with what importing it
// must give.
namespace heddle::hostile {

constexpr auto kInvalid = ErrorCode::kInvalidNode, kMalformed = ErrorCode::kMalformedModel;

struct HostileModel {
  std::string name;
  std::function<std::string()> bytes;
  std::optional<ErrorCode> code;  // nothing: it imports
  std::string says;               // part of the message
  // Files and links to make in the model's folder first: name -> contents, or "-> target".
  std::vector<std::pair<std::string, std::string>> files = {};
};

using Corpus = std::vector<HostileModel>;

Corpus wire_models();      // the bytes are no protobuf, or not ONNX's
Corpus graph_models();     // names, order, functions, nesting
Corpus tensor_models();    // initialisers and external data
Corpus operator_models();  // attributes, types and shapes of operators
Corpus giant_models();     // small files that ask for much

// y = Relu(x) for x f32[2,3].
onnx::testing::ModelWriter relu_model();

// A model of one node "n" that reads x f32[dims] and the initialisers, and writes y.
onnx::testing::ModelWriter one_node(const std::string& op, const std::vector<std::string>& inputs,
                                    const std::vector<onnx::testing::Dim>& dims,
                                    const std::vector<std::string>& attributes = {},
                                    const std::vector<std::string>& initializers = {}, int64_t opset = 17);

std::string float_attr(const std::string& name, float value);
std::string text_attr(const std::string& name, const std::string& value);
std::string graph_attr(const std::string& name, const std::string& graph);
std::string longs(const std::string& name, const std::vector<int64_t>& values);  // an i64 vector
std::string scalar(const std::string& name, int64_t value);
std::string floats(const std::string& name, const Shape& shape);  // zeros

}  // namespace heddle::hostile
