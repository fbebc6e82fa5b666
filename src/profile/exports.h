#pragma once

#include <string>

#include "profile/profile.h"

// A profile in the formats of other viewers. Each function returns the content of a file.
namespace heddle::profile {

// "all;layer1;conv1 1200" for each path with an own value of one metric: the input of flame-graph scripts.
std::string folded_stacks(const Profile& profile, size_t metric);

// https://www.speedscope.app: one sampled profile per metric.
std::string speedscope(const Profile& profile);

// profile.proto of https://github.com/google/pprof, uncompressed: one sample per path that has own values, leaf first,
// with one value per metric.
std::string pprof(const Profile& profile);

// A trace of https://perfetto.dev (protos/perfetto/trace): the processes and tracks of the timeline, with a second lane
// where slices overlap. Without a timeline it shows the tree itself, with the calls of a node side by side.
std::string perfetto(const Profile& profile);

}  // namespace heddle::profile
