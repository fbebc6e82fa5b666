#include "profile/rank_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "profile/advice.h"
#include "profile/advice_rule.h"
#include "profile/views.h"

namespace heddle::profile {
namespace {

// By node of the merged tree: what the slowest rank takes beyond the mean.
std::vector<int64_t> excess(std::span<const Profile> ranks, const CallingContextTree& merged, size_t slowest) {
  const std::string metric = merged.metrics()[*time_metric(merged)].name;
  std::vector<int64_t> result(merged.size(), 0);
  CallingContextTree paths = merged;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::optional<size_t> column = find_metric(ranks[rank].tree, metric);
    if (!column) continue;
    const std::vector<NodeId> at = paths.merge(ranks[rank].tree);
    const std::vector<int64_t> inclusive = ranks[rank].tree.inclusive(*column);
    for (NodeId node = 0; node < at.size(); ++node) {
      if (at[node] >= result.size()) continue;  // no path of the merged profile
      result[at[node]] += rank == slowest ? inclusive[node] * static_cast<int64_t>(ranks.size()) : 0;
      result[at[node]] -= inclusive[node];
    }
  }
  for (int64_t& value : result) value /= static_cast<int64_t>(ranks.size());
  return result;
}

}  // namespace

std::vector<Advice> load_imbalance(std::span<const Profile> ranks, const Profile& merged) {
  constexpr double kMuch = 0.05, kMost = 0.8;
  if (ranks.size() < 2 || !time_metric(merged.tree)) return {};
  std::vector<int64_t> times;
  for (const Profile& rank : ranks) times.push_back(run_time(rank.tree));
  const size_t slowest = static_cast<size_t>(std::max_element(times.begin(), times.end()) - times.begin());
  const int64_t mean = std::accumulate(times.begin(), times.end(), int64_t{0}) / static_cast<int64_t>(times.size());
  const int64_t gain = times[slowest] - mean;
  if (static_cast<double>(gain) < kMuch * static_cast<double>(times[slowest])) return {};
  // The row farthest down that has most of the difference.
  const std::vector<int64_t> differences = excess(ranks, merged.tree, slowest);
  NodeId node = 0;
  const double wanted = std::max(kMost * static_cast<double>(differences[0]), 1.0);
  for (NodeId at = 1; at < merged.tree.size(); ++at) {
    if (merged.tree.parent(at) == node && static_cast<double>(differences[at]) >= wanted) node = at;
  }
  Advice a = advice_on(merged, "load_imbalance", node, gain);
  a.share = static_cast<double>(gain) / static_cast<double>(times[slowest]);
  a.evidence =
      fmt::format("{} takes {} where the processes take {} in the mean, most of it at {}", ranks[slowest].title,
                  time_text(times[slowest]), time_text(mean), path_text(merged.tree, node));
  a.confidence = "measured";
  a.remedy =
      "Give each process the same work: equal batches, sequences sorted by length, layers cut where times are equal";
  return {a};
}

Profile merge_processes(std::span<const Profile> parts) {
  Profile all{"nothing", {}};
  if (parts.empty()) return all;
  all = parts.front();
  for (const Profile& part : parts.subspan(1)) merge(all, part);
  if (parts.size() == 1) return all;
  all.advice = load_imbalance(parts, all);
  for (Advice& advice : advice_for(all)) all.advice.push_back(std::move(advice));
  return all;
}

}  // namespace heddle::profile
