#pragma once

#include "profile/profile.h"

namespace heddle::profile {

// Adds the text of the files whose lines take at least half a percent of the time, the heaviest first, 200 KB in all.
// Files that lie in `folder`, among installed packages or in Python's library lose what stands in front of that, so
// that profiles of another copy or machine compare: "train.py", "torch/nn/modules/linear.py".
Profile with_sources(const Profile& profile, const std::string& folder);

}  // namespace heddle::profile
