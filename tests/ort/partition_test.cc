#include "ort/graph/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace heddle::ort {
namespace {

using Sets = std::vector<std::vector<size_t>>;

// Nodes reached from a node, by a search that is independent of the order of nodes.
std::set<size_t> reached_from(const std::vector<std::vector<size_t>>& edges, size_t start) {
  std::set<size_t> seen;
  std::vector<size_t> open{start};
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    for (const size_t next : edges[node]) {
      if (seen.insert(next).second) open.push_back(next);
    }
  }
  return seen;
}

// The graph in which each set is one node; nodes in no set come after them.
std::vector<std::vector<size_t>> contracted(const NodeGraph& graph, const Sets& sets) {
  std::vector<size_t> place(graph.wanted.size());
  for (size_t node = 0; node < place.size(); ++node) place[node] = sets.size() + node;
  for (size_t set = 0; set < sets.size(); ++set) {
    for (const size_t node : sets[set]) place[node] = set;
  }
  std::vector<std::vector<size_t>> edges(sets.size() + place.size());
  for (size_t node = 0; node < place.size(); ++node) {
    for (const size_t next : graph.successors[node]) {
      if (place[node] != place[next]) edges[place[node]].push_back(place[next]);
    }
  }
  return edges;
}

bool has_circle(const std::vector<std::vector<size_t>>& edges) {
  for (size_t node = 0; node < edges.size(); ++node) {
    if (reached_from(edges, node).contains(node)) return true;
  }
  return false;
}

TEST(Partition, TakesAWholeChain) {
  EXPECT_EQ(partition({{{1}, {2}, {}}, {true, true, true}}), (Sets{{0, 1, 2}}));
}

TEST(Partition, DividesWhereAnotherNodeIsBetween) {
  EXPECT_EQ(partition({{{1}, {2}, {}}, {true, false, true}}), (Sets{{0}, {2}}));
}

TEST(Partition, KeepsABypassOutOfASet) {
  // 0 -> 2 directly and through 1, which stays outside: together, 0 and 2 would wait for themselves.
  EXPECT_EQ(partition({{{1, 2}, {2}, {}}, {true, false, true}}), (Sets{{0}, {2}}));
}

TEST(Partition, ANodeThatComesFirstDividesNothing) {
  // 0 is not wanted and feeds 2, but nothing wanted comes before it.
  EXPECT_EQ(partition({{{2}, {2}, {3}, {}}, {false, true, true, true}}), (Sets{{1, 2, 3}}));
}

TEST(Partition, NodesWithoutAnEdgeStayApart) {
  EXPECT_EQ(partition({{{}, {}}, {true, true}}), (Sets{{0}, {1}}));
}

TEST(Partition, RandomGraphsGiveSetsThatCanRunAndCannotGrow) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const size_t count = 2 + random() % 14;
    NodeGraph graph;
    for (size_t node = 0; node < count; ++node) {
      std::vector<size_t>& next = graph.successors.emplace_back();
      for (size_t other = node + 1; other < count; ++other) {
        if (random() % 4 == 0) next.push_back(other);
      }
      graph.wanted.push_back(random() % 3 != 0);
    }
    const Sets sets = partition(graph);
    std::set<size_t> members;
    for (const auto& set : sets) {
      EXPECT_TRUE(std::is_sorted(set.begin(), set.end()));
      members.insert(set.begin(), set.end());
    }
    for (size_t node = 0; node < count; ++node) EXPECT_EQ(members.contains(node), graph.wanted[node]);
    const auto edges = contracted(graph, sets);
    EXPECT_FALSE(has_circle(edges));
    for (size_t from = 0; from < sets.size(); ++from) {
      for (const size_t to : edges[from]) {
        if (to >= sets.size()) continue;
        Sets merged = sets;
        merged[from].insert(merged[from].end(), merged[to].begin(), merged[to].end());
        merged.erase(merged.begin() + static_cast<int64_t>(to));
        EXPECT_TRUE(has_circle(contracted(graph, merged))) << "two sets could be one";
      }
    }
  }
}

TEST(Partition, ALongChainTakesNoDeepStack) {
  constexpr size_t kCount = 100'000;
  NodeGraph graph;
  for (size_t node = 0; node < kCount; ++node) {
    graph.successors.push_back(node + 1 < kCount ? std::vector{node + 1} : std::vector<size_t>{});
    graph.wanted.push_back(node != kCount / 2);
  }
  EXPECT_EQ(partition(graph).size(), 2U);
}

TEST(Partition, ManySetsTakeNoLongTime) {
  constexpr size_t kCount = 60'000;
  NodeGraph graph;
  for (size_t node = 0; node < kCount; ++node) {
    std::vector<size_t>& next = graph.successors.emplace_back();
    for (const size_t distance : {1, 7, 500}) {
      if (node + distance < kCount) next.push_back(node + distance);
    }
    graph.wanted.push_back(node % 3 != 0);
  }
  EXPECT_GT(partition(graph).size(), 1000U);
}

}  // namespace
}  // namespace heddle::ort
