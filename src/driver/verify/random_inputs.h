#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "heddle/tensor.h"
#include "runtime/plan.h"

namespace heddle::driver {

// Values for every input of a plan that is not in `given`; the same for the same seed. Floats are normal(0,1). Integers
// that index a table are uniform over it; other integers and bools are 0 or 1 (masks, flags). Text, and inputs that
// shapes depend on, have their value in the plan. One integer that branches depend on has a value that the model
// compares it with.
std::map<std::string, Tensor> random_inputs(const runtime::Plan& plan, uint64_t seed,
                                            std::map<std::string, Tensor> given = {});

// The choices of random_inputs() for inputs that branches depend on, in one line: "sr = 16000 (guessed, ...)", or "".
std::string branch_guess(const runtime::Plan& plan, const std::map<std::string, Tensor>& given);

}  // namespace heddle::driver
