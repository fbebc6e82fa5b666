#pragma once

#include <vector>

#include "profile/profile.h"

// Rules on GPU activity. OperationTree (gpu/operation_tree.h) adds this activity to a profile.
namespace heddle::profile {

// Reports that the GPU is idle for more than a tenth of the time because the host launches too late.
std::vector<Advice> waits_for_host(const Profile& profile);
// Reports calls in which the host waits for the GPU (in a synchronisation or in a small copy to the host) and launches
// further work only afterwards. The total gain is the time in which the GPU waits for the host, but at most the time
// that the host waits in these calls. The gain is divided among the calls in proportion to the host's waits.
std::vector<Advice> synchronisation(const Profile& profile);
// Reports repeated allocations and frees of GPU memory if the host launches further work only afterwards. The gain is
// the time for which the GPU waits for them. They are reported only if the gain is at least a twentieth of the run.
std::vector<Advice> memory_churn(const Profile& profile);
// Reports copies from or to pageable memory. The gain is the time that page-locked memory would save in these copies.
std::vector<Advice> pageable_copy(const Profile& profile);
// Reports kernels that only change layout or type, if they take more than a twentieth of the time.
std::vector<Advice> layout_and_casts(const Profile& profile);
// Reports elementwise kernels of a framework, which a compiler would fuse. The gain is half of their time. They are
// reported only if they take more than a tenth of the time.
std::vector<Advice> unfused_elementwise(const Profile& profile);
// Reports f32 products that do not use tensor cores. The gain is three quarters of their time: tensor cores multiply
// tf32 eight times as fast, but memory accesses still take some of the time.
std::vector<Advice> low_precision_unused(const Profile& profile);
// Reports collectives that run while the GPU does nothing else.
std::vector<Advice> exposed_collectives(const Profile& profile);

}  // namespace heddle::profile
