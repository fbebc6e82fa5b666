#pragma once

#include <vector>

#include "profile/profile.h"

// What to do about the time of a profile. Each rule looks at one fault; its advice says by which numbers it goes and
// what would be gained at most. Gains of different rules may be of the same time and do not add up.
namespace heddle::profile {

// Rows that take more than twice their floor: from there to 1.2 times it, which is what kernels reach.
// Nothing of a busy machine.
std::vector<Advice> far_from_floor(const Profile& profile);
// Kernels that the reference evaluator stands in for, because no kernel can be made: all of their time.
std::vector<Advice> reference_fallback(const Profile& profile);
// What the root has of its own, the time between steps of a model: where it is more than a tenth, steps are too small.
std::vector<Advice> small_steps(const Profile& profile);
// A program compiles kernels while it runs (torch.compile, Triton, JAX): the CPU time of it, where it is more than a
// twentieth of the run.
std::vector<Advice> compilation(const Profile& profile);

// All rules of one profile, those of gpu_advice.h among them, the largest gain first: those of at least 1% of the run,
// at most seven.
std::vector<Advice> advice_for(const Profile& profile);

}  // namespace heddle::profile
