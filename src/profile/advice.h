#pragma once

#include <vector>

#include "profile/profile.h"

// Advice on how to reduce the time in a profile. Each rule looks for one problem. Its advice gives the numbers that
// show the problem, and the maximum gain. Gains of different rules may cover the same time, so they do not add up.
namespace heddle::profile {

// Finds rows of the profile that take more than twice their lower bound. The gain is the time above 1.2 times the lower
// bound, which kernels can reach. Gives no advice for a profile of a busy machine.
std::vector<Advice> far_from_floor(const Profile& profile);
// Finds kernels that run in the reference evaluator because no kernel could be generated. The gain is all of their
// time.
std::vector<Advice> reference_fallback(const Profile& profile);
// Looks at the self time of the root, which is spent between the steps of a model. If it is at least a tenth of the
// total, the steps are too small.
std::vector<Advice> small_steps(const Profile& profile);
// Detects that a program compiles kernels while it runs (torch.compile, Triton, JAX). The gain is the CPU time of
// compilation. Gives advice only if that is more than a twentieth of the run.
std::vector<Advice> compilation(const Profile& profile);

// Applies all rules, including those of gpu_advice.h, to a profile. Returns at most seven pieces of advice, largest
// gain first, each with a gain of at least 1% of the run.
std::vector<Advice> advice_for(const Profile& profile);

}  // namespace heddle::profile
