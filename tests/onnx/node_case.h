#pragma once

#include <string>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::node_tests {

// What a file of a test holds: a tensor, a sequence, or nothing (an empty optional).
struct TestValue {
  enum class Kind : uint8_t { kTensor, kSequence, kNone };
  Kind kind = Kind::kNone;
  Tensor tensor;
  std::vector<TestValue> items;
};

// One folder of the official node tests: a model, and inputs with the outputs that they must give.
struct NodeCase {
  std::string name;  // of the folder, without "test_"
  std::string model_path;
  std::string op;      // "domain:Operator" that the test is about
  std::string reason;  // why outputs are not compared by value (random operators); else empty
  std::vector<std::string> input_names, output_names;
  std::vector<TestValue> inputs, outputs;
};

// Folder names below `data`, sorted.
std::vector<std::string> list_cases(const std::string& data);

// Throws heddle::Error when the files do not parse.
NodeCase read_case(const std::string& data, const std::string& folder);

}  // namespace heddle::node_tests
