#include "profile/profile.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <unordered_map>

#include "base/check.h"

namespace heddle::profile {
namespace {

// The sum of a metric's absolute values; 0 without such a metric.
int64_t magnitude(const CallingContextTree& tree, const Metric& metric) {
  const std::vector<Metric>& all = tree.metrics();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Metric& m) { return m.name == metric.name; });
  int64_t sum = 0;
  if (found == all.end()) return sum;
  for (const int64_t value : tree.own(static_cast<size_t>(found - all.begin()))) sum += std::abs(value);
  return sum;
}

// Both are at most kMostTotal.
int64_t added(int64_t a, int64_t b, const std::string& what) {
  if (a + b <= kMostTotal) return a + b;
  fail(ErrorCode::kInvalidInput, what, fmt::format("its values in all profiles sum to more than {}", kMostTotal),
       "Merge fewer profiles");
}

void merge_facts(Profile& into, const Profile& other) {
  std::set<std::pair<std::string, std::string>> known(into.facts.begin(), into.facts.end());
  for (const auto& fact : other.facts) {
    if (known.insert(fact).second) into.facts.push_back(fact);
  }
}

void merge_sources(Profile& into, const Profile& other) {
  std::set<std::pair<std::string, int64_t>> known;
  for (const Source& source : into.sources) known.emplace(source.file, source.first_line);
  for (const Source& source : other.sources) {
    if (known.emplace(source.file, source.first_line).second) into.sources.push_back(source);
  }
}

void merge_roofline(Profile& into, const Profile& other, const std::vector<NodeId>& nodes) {
  std::unordered_map<NodeId, size_t> rows;
  for (size_t i = 0; i < into.roofline.size(); ++i) rows.emplace(into.roofline[i].node, i);
  for (const RooflineRow& row : other.roofline) {
    const auto [found, is_new] = rows.try_emplace(nodes[row.node], into.roofline.size());
    if (is_new) into.roofline.push_back({nodes[row.node], 0, 0, 0, row.bound});
    RooflineRow& sum = into.roofline[found->second];
    sum.floor_ns = added(sum.floor_ns, row.floor_ns, "roofline.floor_ns");
    sum.bytes = added(sum.bytes, row.bytes, "roofline.bytes");
    sum.flops = added(sum.flops, row.flops, "roofline.flops");
  }
}

}  // namespace

bool is_of_busy_machine(const Profile& profile) {
  return std::any_of(profile.facts.begin(), profile.facts.end(),
                     [](const auto& fact) { return fact.first == kBusyFact; });
}

void merge(Profile& into, const Profile& other) {
  for (const Metric& metric : other.tree.metrics()) {
    added(magnitude(into.tree, metric), magnitude(other.tree, metric), "metric " + metric.name);
  }
  const std::vector<NodeId> nodes = into.tree.merge(other.tree);
  merge_facts(into, other);
  merge_roofline(into, other, nodes);
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
  merge_sources(into, other);
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
