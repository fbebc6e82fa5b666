#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "heddle/tensor.h"
#include "runtime/plan.h"

namespace heddle::driver {

// Values for every input of a plan that `given` lacks, the same for the same seed: floats are normal(0,1); integers
// that index a table are uniform over it; other integers and bools are 0 or 1 (masks, flags); inputs that decide shapes
// and text have the value of the plan, and one integer that decides branches a value that the model compares it with.
std::map<std::string, Tensor> random_inputs(const runtime::Plan& plan, uint64_t seed,
                                            std::map<std::string, Tensor> given = {});

// What random_inputs() takes for inputs that decide branches, in one line: "sr = 16000 (guessed, ...)". "" for none.
std::string branch_guess(const runtime::Plan& plan, const std::map<std::string, Tensor>& given);

}  // namespace heddle::driver
