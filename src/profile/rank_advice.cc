#include "profile/rank_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "profile/advice.h"
#include "profile/advice_rule.h"
#include "profile/views.h"

namespace heddle::profile {
namespace {

// By node, with what is below it: what a rank works, which is all of its time but that in collectives.
std::vector<int64_t> work_of(const CallingContextTree& tree, std::string_view metric) {
  const std::optional<size_t> column = find_metric(tree, metric);
  if (!column) return std::vector<int64_t>(tree.size(), 0);
  std::vector<int64_t> sums = tree.own(*column);
  for (NodeId node = 0; node < tree.size(); ++node) {
    if (tree.frame(node).kind == "kernel" && is_collective(tree.frame(node).name)) sums[node] = 0;
  }
  for (size_t node = tree.size(); node-- > 1;) sums[tree.parent(static_cast<NodeId>(node))] += sums[node];
  return sums;
}

// By node of the merged tree: what the slowest rank works beyond the mean.
std::vector<double> excess(std::span<const Profile> ranks, std::span<const std::vector<int64_t>> works,
                           const CallingContextTree& merged, size_t slowest) {
  const auto count = static_cast<double>(ranks.size());
  std::vector<double> result(merged.size(), 0);
  CallingContextTree paths = merged;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<NodeId> at = paths.merge(ranks[rank].tree);
    for (NodeId node = 0; node < at.size(); ++node) {
      if (at[node] >= result.size()) continue;  // no path of the merged profile
      result[at[node]] += static_cast<double>(works[rank][node]) * (rank == slowest ? count - 1 : -1);
    }
  }
  for (double& value : result) value /= count;
  return result;
}

// By rank: the profiles of the processes that are it.
std::vector<Profile> ranks_of(std::span<const Profile> parts) {
  std::map<std::string, Profile> ranks;
  for (const Profile& part : parts) {
    const auto fact = std::find_if(part.facts.begin(), part.facts.end(), is_rank);
    if (fact == part.facts.end()) continue;
    const auto [rank, added] = ranks.try_emplace(fact->second, part);
    if (added) {
      rank->second.title = fact->second;
    } else {
      merge(rank->second, part);
    }
  }
  std::vector<Profile> result;
  for (auto& [name, rank] : ranks) result.push_back(std::move(rank));
  return result;
}

}  // namespace

bool is_rank(const std::pair<std::string, std::string>& fact) {
  return fact.first == "process" && fact.second.starts_with("rank ");
}

std::vector<Advice> load_imbalance(std::span<const Profile> ranks, const Profile& merged) {
  constexpr double kMuch = 0.05, kMost = 0.8;
  if (ranks.size() < 2 || !time_metric(merged.tree)) return {};
  const std::string& metric = merged.tree.metrics()[*time_metric(merged.tree)].name;
  std::vector<std::vector<int64_t>> works;
  std::vector<int64_t> times;
  for (const Profile& rank : ranks) {
    works.push_back(work_of(rank.tree, metric));
    times.push_back(works.back()[0]);
  }
  const size_t slowest = static_cast<size_t>(std::max_element(times.begin(), times.end()) - times.begin());
  const int64_t mean = std::accumulate(times.begin(), times.end(), int64_t{0}) / static_cast<int64_t>(times.size());
  const int64_t gain = times[slowest] - mean;
  if (static_cast<double>(gain) < kMuch * static_cast<double>(times[slowest])) return {};
  // The row farthest down that has most of the difference.
  const std::vector<double> differences = excess(ranks, works, merged.tree, slowest);
  NodeId node = 0;
  const double wanted = std::max(kMost * differences[0], 1.0);
  for (NodeId at = 1; at < merged.tree.size(); ++at) {
    if (merged.tree.parent(at) == node && differences[at] >= wanted) node = at;
  }
  Advice a = advice_on(merged, "load_imbalance", node, gain);
  a.share = static_cast<double>(gain) / static_cast<double>(times[slowest]);
  a.evidence =
      fmt::format("{} works {} where the ranks work {} in the mean, most of the difference at {}", ranks[slowest].title,
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
  all.advice = load_imbalance(ranks_of(parts), all);
  for (Advice& advice : advice_for(all)) all.advice.push_back(std::move(advice));
  return all;
}

}  // namespace heddle::profile
