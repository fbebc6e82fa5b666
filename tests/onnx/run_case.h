#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "frontend/onnx/importer.h"
#include "node_case.h"

namespace heddle::node_tests {

enum class Outcome : char {
  kPassed = 'p',
  kRandom = 'r',   // types and shapes agree, the values are random
  kRefused = 'u',  // an operator, type or shape that Heddle does not support, said in an error
  kError = 'e',    // any other error: the model is valid, so this is a defect
  kWrong = 'w',
  kCrashed = 'c',  // a signal, or no end
};

struct Verdict {
  Outcome outcome = Outcome::kCrashed;
  std::string text;  // what differs, or the error
};

// Called once per test, with its position, operator and verdict.
using Report = std::function<void(size_t index, const std::string& op, const Verdict& verdict)>;

// Evaluates each test with the reference evaluator, rounding to the types.
void run_reference(const std::string& data, std::span<const std::string> folders, const Report& report);
// Compiles the tests for this machine's CPU (mode "cpu") or its first GPU ("cuda", "hip"), all their kernels into one
// library (one call of the compiler costs more than most tests), and runs them.
void run_compiled(const std::string& data, std::span<const std::string> folders, std::string_view mode,
                  const Report& report);

// A test whose model has been imported for the test's inputs.
struct ImportedCase {
  NodeCase test;
  onnx::ImportOptions options;  // values holds every input tensor by name
  onnx::Imported model;
};
ImportedCase import_case(NodeCase test);
// Compares tensors by output name with what the test expects.
Verdict check_outputs(const ImportedCase& imported, const std::map<std::string, Tensor>& tensors);
// What `run` returns, or the verdict on what it throws.
Verdict guarded(const std::function<Verdict()>& run);

}  // namespace heddle::node_tests
