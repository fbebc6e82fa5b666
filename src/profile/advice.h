#pragma once

#include <vector>

#include "profile/profile.h"

// Advice on the time in a profile. Each rule looks for one fault; its advice gives the numbers behind it and the most
// that could be gained. Gains of different rules may cover the same time and do not add up.
namespace heddle::profile {

// Rows that take more than twice their floor. The gain is their time beyond 1.2 times the floor, which kernels reach.
// No advice for a profile of a busy machine.
std::vector<Advice> far_from_floor(const Profile& profile);
// Kernels that run in the reference evaluator because no kernel could be made. The gain is all of their time.
std::vector<Advice> reference_fallback(const Profile& profile);
// The root's own time, which lies between the steps of a model. If it is more than a tenth, steps are too small.
std::vector<Advice> small_steps(const Profile& profile);
// A program compiles kernels while it runs (torch.compile, Triton, JAX). The gain is the CPU time of compilation, if it
// is more than a twentieth of the run.
std::vector<Advice> compilation(const Profile& profile);

// All rules for one profile, including those of gpu_advice.h, largest gain first. Gives at most seven, with gains of at
// least 1% of the run.
std::vector<Advice> advice_for(const Profile& profile);

}  // namespace heddle::profile
