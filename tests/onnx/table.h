#pragma once

#include <string>
#include <vector>

#include "run_case.h"

namespace heddle::node_tests {

struct Row {
  std::string test, op;
  Verdict verdict;
};

// The page docs/onnx-operators.md.
std::string operator_table(const std::vector<Row>& rows, const std::string& mode);

}  // namespace heddle::node_tests
