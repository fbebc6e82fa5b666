#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::runtime {

struct ValueType {
  DType dtype;
  Shape shape;
};

// Evaluates the reference steps of a plan. The runtime does not depend on the IR, so the driver implements this
// interface.
class Interpreter {
 public:
  virtual ~Interpreter() = default;
  // Parses the text of a step; done once per step. Throws kDamagedArtefact if the text is not a graph with these
  // parameter and result types. A result may have another shape with the same number of elements.
  virtual std::shared_ptr<const void> prepare(const std::string& ir, std::span<const ValueType> parameters,
                                              std::span<const ValueType> results) const = 0;
  // Runs a prepared step. Thread-safe. Results have the types that the text declares.
  virtual std::vector<Tensor> run(const void* prepared, std::vector<Tensor> parameters) const = 0;
};

struct Plan;
struct ReferenceStep;
// Prepares a step of a plan with the interpreter.
std::shared_ptr<const void> prepare(const Interpreter& interpreter, const Plan& plan, const ReferenceStep& step);

}  // namespace heddle::runtime
