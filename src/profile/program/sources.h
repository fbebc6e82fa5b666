#pragma once

#include "profile/profile.h"

namespace heddle::profile {

// Adds the text of source files to a profile. A file is added if its lines take at least half a percent of the time.
// Files with more time are added first, up to 200 KB in total. Also shortens the paths of files in `folder`, in
// installed packages and in Python's library ("train.py", "torch/nn/modules/linear.py"), so that profiles from other
// copies or machines are comparable.
Profile with_sources(const Profile& profile, const std::string& folder);

}  // namespace heddle::profile
