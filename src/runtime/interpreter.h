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

// Evaluates the reference steps of a plan. The runtime knows no IR; whoever does (the driver) implements this.
class Interpreter {
 public:
  virtual ~Interpreter() = default;
  // Parses the text of a step once. Throws kDamagedArtefact where it is no graph from such parameters to results of
  // such types (a result's shape may be another with as many elements).
  virtual std::shared_ptr<const void> prepare(const std::string& ir, std::span<const ValueType> parameters,
                                              std::span<const ValueType> results) const = 0;
  // Thread-safe. Results have the types that the text declares.
  virtual std::vector<Tensor> run(const void* prepared, std::vector<Tensor> parameters) const = 0;
};

struct Plan;
struct ReferenceStep;
// The same for a step of a plan.
std::shared_ptr<const void> prepare(const Interpreter& interpreter, const Plan& plan, const ReferenceStep& step);

}  // namespace heddle::runtime
