#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profile/profile.h"

namespace heddle::profile {

// Whether a fact of a profile says which rank of a program the process is: ("process", "rank 3").
bool is_rank(const std::pair<std::string, std::string>& fact);

// The ranks of one program, merged by merge(): what the slowest takes beyond the mean, on the row that differs most.
// Collectives are left out: the other ranks wait in them for the slowest. Nothing where the difference is less than a
// twentieth.
std::vector<Advice> load_imbalance(std::span<const Profile> ranks, const Profile& merged);

// The profiles of the processes of one program as one, with advice on all of it. Ranks
// are compared with each other; several processes of one rank are taken together.
Profile merge_processes(std::span<const Profile> parts);

}  // namespace heddle::profile
