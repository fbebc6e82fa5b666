#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profile/profile.h"

namespace heddle::profile {

// True if a fact of a profile gives the rank of the process: ("process", "rank 3").
bool is_rank(const std::pair<std::string, std::string>& fact);

// Advice on the ranks of one program, whose profiles merge() joined: the time of the slowest beyond the mean, on the
// row that differs most. Excludes collectives, in which other ranks only wait for the slowest. Empty if the difference
// is less than a twentieth of the slowest rank's time.
std::vector<Advice> load_imbalance(std::span<const Profile> ranks, const Profile& merged);

// Merges the profiles of the processes of one program, with advice on the whole. Compares ranks with each other;
// several processes of one rank count as one.
Profile merge_processes(std::span<const Profile> parts);

}  // namespace heddle::profile
