// Each rule over GPU operations on a program that has the fault, and on the same without it.
#include "profile/gpu_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "profile/gpu/operation_tree.h"
#include "profile/rank_advice.h"

namespace heddle::profile {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Kind = GpuOperation::Kind;
using Direction = GpuOperation::Direction;

constexpr uint64_t kUs = 1000;

// What a GPU does for the lines of a script, one after another.
class Program {
 public:
  // Each begins `gap` after the one before. `late`: the host asked for it only then.
  Program& kernel(const std::string& line, const std::string& name, uint64_t us, uint64_t gap = 0, bool late = false) {
    names_.push_back(name);
    GpuOperation o = next(line, us, gap);
    o.name = &names_.back();
    o.launched = late ? o.start : 1;
    operations_.push_back(o);
    return *this;
  }
  Program& copy(const std::string& line, Direction direction, uint64_t bytes, uint64_t us, bool pageable) {
    GpuOperation o = next(line, us, 0);
    o.kind = Kind::kCopy, o.direction = direction, o.bytes = bytes, o.pageable = pageable, o.launched = o.start;
    operations_.push_back(o);
    return *this;
  }
  // The host waits while the GPU works.
  Program& wait(const std::string& line, uint64_t us) {
    GpuOperation o = next(line, us, 0);
    o.kind = Kind::kSync, o.sync = GpuOperation::Sync::kStream;
    at_ = o.start;
    operations_.push_back(o);
    return *this;
  }
  // `us` until the host goes on.
  Program& free(const std::string& line, uint64_t us) {
    GpuOperation o = next(line, us, 0);
    o.kind = Kind::kFree, o.bytes = 1 << 20, o.end = o.start;
    operations_.push_back(o);
    return *this;
  }
  Profile profile() {
    Profile result{"a program", {}};
    add_operations(result, operations_, [&](uint64_t context) {
      return result.tree.child(0, Frame{"python", lines_[context - 1]});
    });
    return result;
  }

 private:
  GpuOperation next(const std::string& line, uint64_t us, uint64_t gap) {
    GpuOperation o;
    o.start = at_ + gap * kUs;
    o.end = at_ = o.start + us * kUs;
    lines_.push_back(line);
    o.context = lines_.size();
    return o;
  }
  uint64_t at_ = 1000000;
  std::deque<std::string> names_;
  std::vector<std::string> lines_;
  std::vector<GpuOperation> operations_;
};

TEST(AdviceOnGpu, WaitsForTheHost) {
  Program late, in_time;
  for (int i = 0; i < 10; ++i) {
    late.kernel("train.py:7", "gemm", 5, 15, true);
    in_time.kernel("train.py:7", "gemm", 5, 1);
  }
  const std::vector<Advice> found = waits_for_host(late.profile());
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].gain_ns, 9 * 15 * 1000);  // the first has nothing before it
  EXPECT_NEAR(found[0].share, 135.0 / 185, 1e-9);
  EXPECT_THAT(found[0].evidence, HasSubstr("a kernel takes 5.0 us"));
  EXPECT_THAT(waits_for_host(in_time.profile()), IsEmpty());
}

TEST(AdviceOnGpu, SynchronisationIsBlamedForTheIdleTimeAfterIt) {
  Program waiting, free_running, late_anyway;
  for (int i = 0; i < 10; ++i) {
    late_anyway.wait("train.py:9 loss.item()", 5).kernel("train.py:7", "gemm", 50, 50, true);
    waiting.wait("train.py:9 loss.item()", 60).kernel("train.py:7", "gemm", 50, 50, true);
    waiting.copy("train.py:9 loss.item()", Direction::kDeviceToHost, 4, 2, true);
    free_running.kernel("train.py:7", "gemm", 50);
  }
  const Profile profile = waiting.profile();
  const std::vector<Advice> found = synchronisation(profile);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(profile.tree.frame(found[0].node).name, "train.py:9 loss.item()");
  EXPECT_EQ(found[0].gain_ns, 9 * 50 * 1000);
  ASSERT_THAT(synchronisation(late_anyway.profile()), SizeIs(1));
  EXPECT_EQ(synchronisation(late_anyway.profile())[0].gain_ns, 10 * 5 * 1000);
  EXPECT_THAT(synchronisation(free_running.profile()), IsEmpty());
}

TEST(AdviceOnGpu, MemoryThatIsFreedInALoop) {
  Program churning, keeping;
  for (int i = 0; i < 10; ++i) {
    churning.free("train.py:5 empty_cache()", 20).kernel("train.py:7", "gemm", 50, 0, true);
    keeping.kernel("train.py:7", "gemm", 50, 20, true);
  }
  const Profile profile = churning.profile();
  const std::vector<Advice> found = memory_churn(profile);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(profile.tree.frame(profile.tree.parent(found[0].node)).name, "train.py:5 empty_cache()");
  EXPECT_EQ(found[0].gain_ns, 9 * 20 * 1000);
  EXPECT_THAT(waits_for_host(profile), IsEmpty());  // it is one fault
  EXPECT_THAT(memory_churn(keeping.profile()), IsEmpty());
}

TEST(AdviceOnGpu, PageableCopies) {
  constexpr uint64_t kBytes = 100000000;
  const Profile alone = Program().copy("load", Direction::kHostToDevice, kBytes, 20000, true).profile();
  ASSERT_THAT(pageable_copy(alone), SizeIs(1));
  EXPECT_EQ(pageable_copy(alone)[0].gain_ns, 17500000);  // at 40 GB/s
  EXPECT_EQ(pageable_copy(alone)[0].confidence, "guess");
  // A copy of page-locked memory shows what this machine reaches: 50 GB/s.
  const Profile both = Program()
                           .copy("load", Direction::kHostToDevice, kBytes, 20000, true)
                           .copy("weights", Direction::kHostToDevice, kBytes, 2000, false)
                           .profile();
  ASSERT_THAT(pageable_copy(both), SizeIs(1));
  EXPECT_EQ(pageable_copy(both)[0].gain_ns, 18000000);
  EXPECT_EQ(pageable_copy(both)[0].confidence, "measured");
  EXPECT_THAT(pageable_copy(both)[0].evidence, HasSubstr("load copies 100 MB"));
  const Profile locked = Program().copy("load", Direction::kHostToDevice, kBytes, 2000, false).profile();
  EXPECT_THAT(pageable_copy(locked), IsEmpty());
}

TEST(AdviceOnGpu, KernelsByTheirNames) {
  const auto with = [](const std::string& kernel) {
    return Program().kernel("a", "sm90_xmma_gemm_bf16", 800).kernel("b", kernel, 200).profile();
  };
  const Profile layout = with("void cudnn::nchwToNhwcKernel<float>"),
                elementwise = with("vectorized_elementwise_kernel"), f32 = with("ampere_sgemm_128x64_nn"),
                nccl = with("ncclDevKernel_AllReduce_Sum"), none = with("softmax");
  using Rule = std::vector<Advice> (*)(const Profile&);
  const std::pair<Rule, const Profile*> pairs[] = {{layout_and_casts, &layout},
                                                   {unfused_elementwise, &elementwise},
                                                   {low_precision_unused, &f32},
                                                   {exposed_collectives, &nccl}};
  for (const auto& [rule, faulty] : pairs) {
    for (const Profile* profile : {&layout, &elementwise, &f32, &nccl, &none}) {
      if (profile != faulty) {
        EXPECT_THAT(rule(*profile), IsEmpty());
        continue;
      }
      ASSERT_THAT(rule(*profile), SizeIs(1));
      EXPECT_THAT(rule(*profile)[0].evidence, HasSubstr("take 200.0 us"));
      EXPECT_EQ(profile->tree.frame(profile->tree.parent(rule(*profile)[0].node)).name, "b");
    }
  }
}

TEST(AdviceOnGpu, ManySmallCopiesAreSmallAndLargeOnesAreNot) {
  Program small, large;
  for (int i = 0; i < 2000; ++i) {
    small.kernel("train.py:7", "gemm", 50, 50, true);
    small.copy("train.py:9", Direction::kDeviceToHost, 40, 2, true);
    large.kernel("train.py:7", "gemm", 50, 50, true);
    large.copy("train.py:9", Direction::kDeviceToHost, 100000, 20, true);
  }
  EXPECT_THAT(synchronisation(small.profile()), SizeIs(1));
  EXPECT_THAT(pageable_copy(small.profile()), IsEmpty());  // 80 KB together
  EXPECT_THAT(synchronisation(large.profile()), IsEmpty());
  EXPECT_THAT(pageable_copy(large.profile()), SizeIs(1));
}

std::vector<Profile> ranks_of(std::initializer_list<uint64_t> attention, bool with_waits = false) {
  const uint64_t slowest = std::max(attention);
  std::vector<Profile> ranks;
  for (const uint64_t us : attention) {
    Program program;
    program.kernel("attention", "flash", us).kernel("mlp", "gemm", 100);
    if (with_waits) program.kernel("mlp", "ncclDevKernel_AllReduce", slowest - us + 20);
    ranks.push_back(program.profile());
    ranks.back().title = "rank " + std::to_string(ranks.size() - 1);
    ranks.back().facts = {{"process", ranks.back().title}};
  }
  return ranks;
}

TEST(AdviceOnGpu, TheSlowestRankAndWhereItIsSlow) {
  for (const bool with_waits : {false, true}) {  // in a collective the others wait for the slowest
    const std::vector<Profile> ranks = ranks_of({100, 100, 100, 180}, with_waits);
    Profile merged = ranks[0];
    for (size_t i = 1; i < ranks.size(); ++i) merge(merged, ranks[i]);
    const std::vector<Advice> found = load_imbalance(ranks, merged);
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].gain_ns, 60000);
    EXPECT_EQ(merged.tree.frame(found[0].node).name, "flash");
    EXPECT_THAT(found[0].evidence, HasSubstr("rank 3 works 280.0 us where the ranks work 220.0 us in the mean"));
    EXPECT_EQ(merge_processes(ranks).advice.at(0).rule, "load_imbalance");
    EXPECT_THAT(load_imbalance(std::span(ranks).first(3), merged), IsEmpty());
    EXPECT_THAT(load_imbalance(std::span(ranks).last(1), ranks[3]), IsEmpty());
  }
}

TEST(AdviceOnGpu, OnlyRanksAreCompared) {
  const auto rules = [](std::span<const Profile> parts) {
    std::vector<std::string> names;
    for (const Advice& advice : merge_processes(parts).advice) names.push_back(advice.rule);
    return names;
  };
  std::vector<Profile> parts = ranks_of({100, 300});
  EXPECT_THAT(rules(parts), Contains("load_imbalance"));
  parts[1].facts = {{"process", "process 71"}};  // another program, such as the one that started the ranks
  EXPECT_THAT(rules(parts), Not(Contains("load_imbalance")));
  parts[1].facts = parts[0].facts;  // of one rank
  EXPECT_THAT(rules(parts), Not(Contains("load_imbalance")));
}

}  // namespace
}  // namespace heddle::profile
