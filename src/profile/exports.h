#pragma once

#include <string>

#include "profile/profile.h"

// Exports of a profile to the formats of other viewers. Each function returns the content of a file.
namespace heddle::profile {

// The input of flame-graph scripts: one line such as "all;layer1;conv1 1200" for each path that has a self value of the
// metric with index `metric`.
std::string folded_stacks(const Profile& profile, size_t metric);

// The format of https://www.speedscope.app, with one sampled profile per metric.
std::string speedscope(const Profile& profile);

// The format of https://github.com/google/pprof (profile.proto), uncompressed. Each path with self values is a sample
// with one value per metric; its frames start with the leaf.
std::string pprof(const Profile& profile);

// The trace format of https://perfetto.dev (protos/perfetto/trace), with the processes and tracks of the timeline.
// Overlapping slices of a track are put on a second track. If the profile has no timeline, the trace shows the tree,
// with the calls of a node side by side.
std::string perfetto(const Profile& profile);

}  // namespace heddle::profile
