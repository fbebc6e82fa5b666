#pragma once

#include <vector>

#include "profile/profile.h"

// Rules on GPU activity, as OperationTree (gpu/operation_tree.h) adds it to a profile.
namespace heddle::profile {

// The GPU is idle for more than a tenth of the time because the host launches too late.
std::vector<Advice> waits_for_host(const Profile& profile);
// The host waits for the GPU, in a synchronisation or a small copy from it, and launches only afterwards. The gain is
// the time in which the GPU waits for the host, at most the time of these waits, divided among calls by their waits.
std::vector<Advice> synchronisation(const Profile& profile);
// The host allocates or frees GPU memory again and again, and launches only afterwards. The gain is the time in which
// the GPU waits for that, if it is more than a twentieth.
std::vector<Advice> memory_churn(const Profile& profile);
// Copies from or to pageable memory. The gain is their time beyond that of page-locked copies.
std::vector<Advice> pageable_copy(const Profile& profile);
// Kernels that only change layout or type, if they take more than a twentieth of the time.
std::vector<Advice> layout_and_casts(const Profile& profile);
// Elementwise kernels of a framework, which a compiler fuses. The gain is half of their time, if they take more than a
// tenth.
std::vector<Advice> unfused_elementwise(const Profile& profile);
// f32 products without tensor cores. The gain is three quarters of their time: tensor cores multiply tf32 eight times
// as fast, but memory takes some of the time.
std::vector<Advice> low_precision_unused(const Profile& profile);
// Collectives that run while nothing else does.
std::vector<Advice> exposed_collectives(const Profile& profile);

}  // namespace heddle::profile
