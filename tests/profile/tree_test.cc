// The calling-context tree and its views: sums are exact, recursion counts once.
#include "profile/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "heddle/error.h"
#include "profile/profile.h"
#include "profile/views.h"
#include "tests/profile/random_profile.h"

namespace heddle::profile {
namespace {

using ::testing::ElementsAre;

int64_t sum_of(const std::vector<Row>& rows, int64_t Row::*field) {
  return std::accumulate(rows.begin(), rows.end(), int64_t{0},
                         [&](int64_t sum, const Row& r) { return sum + r.*field; });
}

const Row* find(const std::vector<Row>& rows, const CallingContextTree& tree, const std::string& name) {
  for (const Row& row : rows) {
    if (tree.frames()[row.frame].name == name) return &row;
  }
  return nullptr;
}

// all > f > g > f > g, with 1, 2, 4, 8 and 16.
CallingContextTree recursion() {
  CallingContextTree tree;
  const size_t time = tree.add_metric(metrics::kCpu);
  NodeId at = 0;
  int64_t value = 1;
  tree.add(at, time, value);
  for (const char* name : {"f", "g", "f", "g"}) {
    at = tree.child(at, Frame{"native", name});
    tree.add(at, time, value *= 2);
  }
  return tree;
}

TEST(Tree, APathIsOneNode) {
  CallingContextTree tree;
  const NodeId a = tree.child(0, Frame{"module", "a"});
  EXPECT_EQ(tree.child(0, Frame{"module", "a"}), a);
  EXPECT_NE(tree.child(0, Frame{"node", "a"}), a);
  EXPECT_NE(tree.child(a, Frame{"module", "a"}), a);
  EXPECT_EQ(tree.size(), 4U);
}

TEST(Tree, AMetricKeepsItsUnit) {
  CallingContextTree tree;
  EXPECT_EQ(tree.add_metric({"X", "ns", ""}), tree.add_metric({"X", "ns", ""}));
  EXPECT_THROW(tree.add_metric({"X", "bytes", ""}), Error);
}

TEST(Views, RecursionCountsOnce) {
  const CallingContextTree tree = recursion();
  const std::vector<Row> rows = flat(tree, 0);
  EXPECT_EQ(find(rows, tree, "f")->inclusive, 30);
  EXPECT_EQ(find(rows, tree, "f")->own, 10);
  EXPECT_EQ(find(rows, tree, "g")->inclusive, 28);
  EXPECT_EQ(find(rows, tree, "g")->own, 20);
}

TEST(Views, AgreeToTheNanosecond) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const CallingContextTree tree = test::random_profile(seed).tree;
    for (size_t m = 0; m < tree.metrics().size(); ++m) {
      const int64_t total = tree.total(m);
      EXPECT_EQ(top_down(tree, m).inclusive, total);
      EXPECT_EQ(sum_of(flat(tree, m), &Row::own), total);
    }
  }
}

TEST(Views, TheHotPathFollowsTheLargestChild) {
  CallingContextTree tree;
  const size_t time = tree.add_metric(metrics::kCpu);
  const NodeId a = tree.child(0, Frame{"module", "a"}), b = tree.child(0, Frame{"module", "b"});
  const NodeId c = tree.child(b, Frame{"node", "c"}), d = tree.child(b, Frame{"node", "d"});
  tree.add(a, time, 10);
  tree.add(c, time, 11);
  tree.add(d, time, 12);
  EXPECT_THAT(hot_path(tree, time), ElementsAre(0, b, d));
  EXPECT_THAT(hot_path(tree, time, 0.6), ElementsAre(0, b));
}

TEST(Profiles, MergedValuesAreSums) {
  const Profile a = test::random_profile(1), b = test::random_profile(2);
  Profile both = a;
  merge(both, b);
  for (size_t m = 0; m < both.tree.metrics().size(); ++m) {
    const auto of = [&](const Profile& p) {
      return p.tree.total(CallingContextTree(p.tree).add_metric(both.tree.metrics()[m]));
    };
    EXPECT_EQ(both.tree.total(m), of(a) + of(b));
  }
  Profile twice = a;
  merge(twice, a);
  EXPECT_EQ(twice.tree.size(), a.tree.size());
  EXPECT_EQ(twice.facts, a.facts);
  EXPECT_EQ(twice.roofline.size(), a.roofline.size());
}

TEST(Profiles, ADifferenceHasBothSides) {
  const Profile older = test::random_profile(3), newer = test::random_profile(4);
  const Difference d = difference(older, newer);
  for (size_t m = 0; m < older.tree.metrics().size(); ++m) {
    const size_t at = CallingContextTree(d.profile.tree).add_metric(older.tree.metrics()[m]);
    EXPECT_EQ(std::accumulate(d.before[at].begin(), d.before[at].end(), int64_t{0}), older.tree.total(m));
  }
  for (size_t m = 0; m < newer.tree.metrics().size(); ++m) EXPECT_EQ(d.profile.tree.total(m), newer.tree.total(m));
}

}  // namespace
}  // namespace heddle::profile
