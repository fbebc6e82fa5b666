#pragma once

#include <string>

#include "profile/profile.h"

// A profile in the forms of other viewers. Each is the content of a file.
namespace heddle::profile {

// "all;layer1;conv1 1200" for each path with an own value of one metric: what flame-graph scripts read.
std::string folded_stacks(const Profile& profile, size_t metric);

// https://www.speedscope.app: one sampled profile a metric.
std::string speedscope(const Profile& profile);

// profile.proto of https://github.com/google/pprof, uncompressed: a sample for each path that has own values, leaf
// first, with a value a metric.
std::string pprof(const Profile& profile);

// A trace of https://perfetto.dev (protos/perfetto/trace): a process and tracks for those of the timeline, with a
// second lane where slices overlap. Without a timeline the tree itself, the calls of a node side by side.
std::string perfetto(const Profile& profile);

}  // namespace heddle::profile
