#include "profile/profile.h"

#include <algorithm>
#include <unordered_map>

namespace heddle::profile {

void merge(Profile& into, const Profile& other) {
  const std::vector<NodeId> nodes = into.tree.merge(other.tree);
  for (const auto& fact : other.facts) {
    if (std::find(into.facts.begin(), into.facts.end(), fact) == into.facts.end()) into.facts.push_back(fact);
  }
  std::unordered_map<NodeId, size_t> rows;
  for (size_t i = 0; i < into.roofline.size(); ++i) rows.emplace(into.roofline[i].node, i);
  for (const RooflineRow& row : other.roofline) {
    const auto [found, is_new] = rows.try_emplace(nodes[row.node], into.roofline.size());
    if (is_new) into.roofline.push_back({nodes[row.node], 0, 0, 0, row.bound});
    RooflineRow& sum = into.roofline[found->second];
    sum.floor_ns += row.floor_ns;
    sum.bytes += row.bytes;
    sum.flops += row.flops;
  }
  if (!into.device) into.device = other.device;
  std::vector<uint32_t> tracks;
  for (const Timeline::Track& track : other.timeline.tracks) {
    tracks.push_back(static_cast<uint32_t>(into.timeline.tracks.size()));
    into.timeline.tracks.push_back(track);
  }
  for (Timeline::Slice slice : other.timeline.slices) {
    slice.track = tracks[slice.track];
    if (slice.node >= 0) slice.node = nodes[static_cast<size_t>(slice.node)];
    into.timeline.slices.push_back(slice);
  }
  for (const Source& source : other.sources) {
    const bool is_known = std::any_of(into.sources.begin(), into.sources.end(), [&](const Source& known) {
      return known.file == source.file && known.first_line == source.first_line;
    });
    if (!is_known) into.sources.push_back(source);
  }
  for (Advice advice : other.advice) {
    advice.node = nodes[advice.node];
    into.advice.push_back(std::move(advice));
  }
}

Profile relabelled(const Profile& profile, const std::function<std::optional<Frame>(const Frame&)>& frame_for) {
  const CallingContextTree& tree = profile.tree;
  std::vector<std::optional<Frame>> frames;
  for (const Frame& frame : tree.frames()) frames.push_back(frame_for(frame));
  Profile result = profile;
  result.tree = CallingContextTree(tree.frame(0));
  for (const Metric& metric : tree.metrics()) result.tree.add_metric(metric);
  std::vector<NodeId> nodes(tree.size(), 0);
  for (NodeId node = 0; node < tree.size(); ++node) {
    const std::optional<Frame>& frame = frames[tree.frame_id(node)];
    if (node != 0) nodes[node] = frame ? result.tree.child(nodes[tree.parent(node)], *frame) : nodes[tree.parent(node)];
    for (size_t m = 0; m < tree.metrics().size(); ++m) result.tree.add(nodes[node], m, tree.own(m)[node]);
  }
  for (RooflineRow& row : result.roofline) row.node = nodes[row.node];
  for (Advice& advice : result.advice) advice.node = nodes[advice.node];
  for (Timeline::Slice& slice : result.timeline.slices) {
    if (slice.node >= 0) slice.node = nodes[static_cast<size_t>(slice.node)];
  }
  return result;
}

Difference difference(const Profile& older, const Profile& newer) {
  Difference result{newer, {}};
  CallingContextTree& tree = result.profile.tree;
  // Its paths without its values.
  CallingContextTree paths = tree;
  const std::vector<NodeId> nodes = paths.merge(older.tree);
  for (NodeId node = static_cast<NodeId>(tree.size()); node < paths.size(); ++node) {
    tree.child(paths.parent(node), paths.frame(node));
  }
  for (const Metric& metric : older.tree.metrics()) tree.add_metric(metric);
  result.before.assign(tree.metrics().size(), std::vector<int64_t>(tree.size(), 0));
  for (size_t m = 0; m < older.tree.metrics().size(); ++m) {
    std::vector<int64_t>& column = result.before[tree.add_metric(older.tree.metrics()[m])];
    for (NodeId node = 0; node < older.tree.size(); ++node) column[nodes[node]] += older.tree.own(m)[node];
  }
  return result;
}

}  // namespace heddle::profile
