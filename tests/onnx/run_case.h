#pragma once

#include <string>

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

// Compiles (mode "cpu") or evaluates (mode "reference") one test and compares its outputs. Does not throw.
Verdict run_case(const std::string& data, const std::string& folder, const std::string& mode);

}  // namespace heddle::node_tests
