#pragma once

#include <random>
#include <string>

#include "profile/profile.h"

namespace heddle::test {

// A tree with recursion and names that formats could trip over, values of several metrics, a roofline and a timeline
// whose slices overlap.
inline profile::Profile random_profile(unsigned seed) {
  using profile::Frame;
  using profile::NodeId;
  std::mt19937 random(seed);
  const char* const names[] = {"conv", "a;b", "two\nlines", "</script>", "\"quoted\"", "f", "g", "\xc3\xa9", "\xff"};
  const char* const kinds[] = {"module", "node", "kernel", "python"};
  profile::Profile p{"random", {{"runs", "3"}}};
  const size_t metrics[] = {p.tree.add_metric(profile::metrics::kGpuKernels),
                            p.tree.add_metric(profile::metrics::kLaunches), p.tree.add_metric({"BYTES", "bytes", ""})};
  for (int i = 0; i < 200; ++i) {
    const auto parent = static_cast<NodeId>(random() % p.tree.size());
    const NodeId node =
        p.tree.child(parent, Frame{kinds[random() % 4], names[random() % 9], random() % 2 == 0 ? "" : "train.py",
                                   static_cast<int64_t>(random() % 50)});
    for (const size_t m : metrics) p.tree.add(node, m, static_cast<int64_t>(random() % 100000));
  }
  for (NodeId node = 1; node < p.tree.size(); node += 5) {
    p.roofline.push_back({node, static_cast<int64_t>(random() % 1000), 4096, 100, "memory"});
  }
  p.device = profile::Device{"a device", 1000000000000, {{"f32", 2000000000000}}};
  p.timeline.tracks = {{"rank 0", "stream 7"}, {"rank 0", "stream 8"}};
  for (uint32_t i = 0; i < 50; ++i) {
    p.timeline.slices.push_back({i % 2, static_cast<int64_t>(random() % 10000), static_cast<int64_t>(random() % 500),
                                 static_cast<int64_t>(random() % p.tree.size()) - 1});
  }
  p.sources.push_back({"train.py", 1, "import torch\n"});
  p.advice.push_back({"pageable_copy", 1, "3 copies", 1000, 0.25, "measured", "Pin the memory"});
  return p;
}

}  // namespace heddle::test
