#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profile/profile.h"

namespace heddle::profile {

// True if a fact of a profile states the rank of the process: ("process", "rank 3").
bool is_rank(const std::pair<std::string, std::string>& fact);

// Returns advice on the load balance between the ranks of one program. `merged` is the merge() of their profiles. The
// advice gives the difference between the slowest rank's time and the mean, on the deepest row that has most of this
// difference. Collectives are excluded, because other ranks only wait in them for the slowest rank. Empty if the
// difference is less than a twentieth of the slowest rank's time.
std::vector<Advice> load_imbalance(std::span<const Profile> ranks, const Profile& merged);

// Merges the profiles of the processes of one program, and adds advice on the whole program. Compares ranks with each
// other; several processes of one rank count as one rank.
Profile merge_processes(std::span<const Profile> parts);

}  // namespace heddle::profile
