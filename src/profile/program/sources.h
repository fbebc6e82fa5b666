#pragma once

#include "profile/profile.h"

namespace heddle::profile {

// Adds the text of files whose lines take at least half a percent of the time, the heaviest first, at most 200 KB in
// all. Strips the leading path of files in `folder`, in installed packages and in Python's library, so that profiles of
// another copy or machine are comparable: "train.py", "torch/nn/modules/linear.py".
Profile with_sources(const Profile& profile, const std::string& folder);

}  // namespace heddle::profile
