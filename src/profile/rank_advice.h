#pragma once

#include <span>
#include <vector>

#include "profile/profile.h"

namespace heddle::profile {

// The ranks of one program, merged by merge(): what the slowest takes beyond the mean, on the row that differs most.
// Nothing where that is less than a twentieth.
std::vector<Advice> load_imbalance(std::span<const Profile> ranks, const Profile& merged);

// The profiles of the processes of one program as one, with advice on all of it.
Profile merge_processes(std::span<const Profile> parts);

}  // namespace heddle::profile
