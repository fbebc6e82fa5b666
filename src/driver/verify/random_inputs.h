#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "heddle/tensor.h"
#include "runtime/plan.h"

namespace heddle::driver {

// Values for every input of a plan that `given` lacks, the same for the same seed: floats are normal(0,1); integers
// that index a table are uniform over it; other integers and bools are 0 or 1 (masks, flags); inputs that decide shapes
// and text have the value of the plan.
std::map<std::string, Tensor> random_inputs(const runtime::Plan& plan, uint64_t seed,
                                            std::map<std::string, Tensor> given = {});

}  // namespace heddle::driver
