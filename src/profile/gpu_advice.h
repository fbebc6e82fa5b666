#pragma once

#include <vector>

#include "profile/profile.h"

// Rules over what a GPU did for a program, as OperationTree (gpu/operation_tree.h) adds it to a profile.
namespace heddle::profile {

// The GPU has nothing to do for more than a tenth of the time, because the host launches too late.
std::vector<Advice> waits_for_host(const Profile& profile);
// The host waits for the GPU, by a synchronisation or by a small copy from it, and launches only afterwards: of the
// time in which the GPU waits for the host the share of these calls, and no more than they wait.
std::vector<Advice> synchronisation(const Profile& profile);
// The host allocates or frees memory of the GPU again and again, and launches only afterwards: the time in which the
// GPU waits for that, where it is more than a twentieth.
std::vector<Advice> memory_churn(const Profile& profile);
// Copies from or to pageable memory: what they take beyond the rate of copies of page-locked memory.
std::vector<Advice> pageable_copy(const Profile& profile);
// Kernels that only change layout or type, where they are more than a twentieth of the time.
std::vector<Advice> layout_and_casts(const Profile& profile);
// Elementwise kernels of a framework, which a compiler fuses: half of their time, where they are more than a tenth.
std::vector<Advice> unfused_elementwise(const Profile& profile);
// Products of f32 without tensor cores: three quarters of their time. Tensor cores multiply tf32 eight times as fast,
// and some of the time is memory's.
std::vector<Advice> low_precision_unused(const Profile& profile);
// Collectives that run while nothing else does.
std::vector<Advice> exposed_collectives(const Profile& profile);

}  // namespace heddle::profile
