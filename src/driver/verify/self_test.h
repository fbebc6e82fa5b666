#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/model.h"

namespace heddle::driver {

// A small model that runs kernels of one kind.
struct SelfTestResult {
  std::string kind;  // "attention of halves"
  std::string why;   // what failed; empty if the results agree with the float64 reference
  double error = 0, bound = 0;
  double seconds = 0;  // with compiling and the reference
};

// Runs a model of each kind of kernel on the target of `options` and compares it with the float64 reference. Calls
// `done` after each. Never throws for a kind that fails.
std::vector<SelfTestResult> run_self_test(const CompileOptions& options,
                                          const std::function<void(const SelfTestResult&)>& done = {});

}  // namespace heddle::driver
