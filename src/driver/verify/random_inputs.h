#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "heddle/tensor.h"
#include "runtime/plan.h"

namespace heddle::driver {

// Returns a value for every input of a plan: the value in `given`, else a random value that depends only on the seed
// and the input. Random floats are normal(0,1). Random integers that index a table are uniform over the table; other
// random integers and bools are 0 or 1 (masks, flags). Texts, and inputs that shapes depend on, get the value that the
// plan stores. A single integer that branches depend on gets a value with which the model compares it.
std::map<std::string, Tensor> random_inputs(const runtime::Plan& plan, uint64_t seed,
                                            std::map<std::string, Tensor> given = {});

// Returns the values that random_inputs() chooses for inputs that branches depend on, in one line: "sr = 16000
// (guessed, ...)". Returns "" if there are no such inputs.
std::string branch_guess(const runtime::Plan& plan, const std::map<std::string, Tensor>& given);

}  // namespace heddle::driver
