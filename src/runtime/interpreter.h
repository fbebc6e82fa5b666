#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::runtime {

// Evaluates the reference steps of a plan. The runtime knows no IR; whoever does (the driver) implements this.
class Interpreter {
 public:
  virtual ~Interpreter() = default;
  // Parses the text of a step once. Throws Error.
  virtual std::shared_ptr<const void> prepare(const std::string& ir) const = 0;
  // Thread-safe. Results have the types that the text declares.
  virtual std::vector<Tensor> run(const void* prepared, std::vector<Tensor> parameters) const = 0;
};

}  // namespace heddle::runtime
