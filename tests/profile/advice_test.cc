// Each rule on a profile that has the fault, and on one that has not.
#include "profile/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::profile {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A kernel of `time` under a node; the root has `between`.
Profile profile_with(int64_t time, int64_t between, const std::string& kernel = "gemm") {
  Profile p{"a model", {}};
  p.device = Device{"a CPU", 1, {}};
  const size_t metric = p.tree.add_metric(metrics::kCpu);
  p.tree.add(0, metric, between);
  p.tree.add(p.tree.child(p.tree.child(0, Frame{"node", "fc1"}), Frame{"kernel", kernel}), metric, time);
  return p;
}

TEST(Advice, FarFromItsFloor) {
  Profile p = profile_with(1000, 0);
  p.roofline.push_back({2, 250, 4096, 100, "memory"});
  const std::vector<Advice> found = far_from_floor(p);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].gain_ns, 700);
  EXPECT_DOUBLE_EQ(found[0].share, 0.7);
  EXPECT_THAT(found[0].evidence, HasSubstr("fc1 takes 4.0 times the least that the memory allows"));
  p.roofline[0].floor_ns = 600;
  EXPECT_THAT(far_from_floor(p), IsEmpty());
  p.roofline[0].floor_ns = 0;
  EXPECT_THAT(far_from_floor(p), IsEmpty());
}

TEST(Advice, OfABusyMachineSaysNothingOfFloors) {
  Profile p = profile_with(1000, 0);
  p.roofline.push_back({2, 250, 4096, 100, "memory"});
  ASSERT_THAT(advice_for(p), SizeIs(1));
  p.facts.emplace_back(kBusyFact, "a thread waited");
  EXPECT_THAT(advice_for(p), IsEmpty());
}

TEST(Advice, ReferenceFallback) {
  ASSERT_THAT(reference_fallback(profile_with(1000, 0, "~ reference: scan")), SizeIs(1));
  EXPECT_EQ(reference_fallback(profile_with(1000, 0, "reference: scan"))[0].node, 2U);
  EXPECT_THAT(reference_fallback(profile_with(1000, 0)), IsEmpty());
}

TEST(Advice, SmallSteps) {
  EXPECT_THAT(small_steps(profile_with(1000, 90)), IsEmpty());
  ASSERT_THAT(small_steps(profile_with(1000, 300)), SizeIs(1));
  EXPECT_EQ(small_steps(profile_with(1000, 300))[0].gain_ns, 300);
}

TEST(Advice, Compilation) {
  for (const std::string file : {"/lib/torch/_dynamo/convert_frame.py", "/home/me/train.py"}) {
    Profile p{"a program", {}};
    const size_t metric = p.tree.add_metric(metrics::kCpu);
    const NodeId line = p.tree.child(0, Frame{"python", "step", "train.py", 7});
    p.tree.add(line, metric, 500);
    const NodeId compiles = p.tree.child(line, Frame{"python", "_compile", file, 3});
    p.tree.add(compiles, metric, 200);
    p.tree.add(
        p.tree.child(p.tree.child(compiles, Frame{"python", "trace", "x.py", 1}), {"python", "_compile", file, 3}),
        metric, 300);
    const std::vector<Advice> found = compilation(p);
    if (file == "/home/me/train.py") {
      EXPECT_THAT(found, IsEmpty());
      continue;
    }
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].gain_ns, 500);
    EXPECT_DOUBLE_EQ(found[0].share, 0.5);
    EXPECT_EQ(found[0].node, compiles);
    EXPECT_THAT(found[0].evidence, HasSubstr("step"));
  }
}

TEST(Advice, WhatGainsLittleIsLeftOut) {
  Profile p = profile_with(1000000, 0);
  const size_t metric = 0;
  for (int i = 0; i < 20; ++i) {
    const NodeId node = p.tree.child(p.tree.child(0, Frame{"node", std::to_string(i)}), Frame{"kernel", "stitch"});
    p.tree.add(node, metric, 1000 * i);
    p.roofline.push_back({node, 1, 1, 1, "memory"});
  }
  const std::vector<Advice> told = advice_for(p);
  ASSERT_THAT(told, SizeIs(7));
  EXPECT_TRUE(
      std::is_sorted(told.begin(), told.end(), [](const auto& a, const auto& b) { return a.gain_ns > b.gain_ns; }));
  EXPECT_GE(told.back().share, 0.01);
  EXPECT_THAT(advice_for(Profile{"empty", {}}), IsEmpty());
}

}  // namespace
}  // namespace heddle::profile
