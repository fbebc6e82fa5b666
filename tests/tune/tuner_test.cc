#include "tune/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/check.h"

namespace heddle::tune {
namespace {

// Candidates with known times under noise.
class FakeTrial : public Trial {
 public:
  explicit FakeTrial(std::vector<double> times) : times_(std::move(times)), runs(times_.size()) {}
  size_t size() const override { return times_.size(); }
  double run(size_t candidate) override {
    ++runs[candidate];
    if (times_[candidate] < 0) fail(ErrorCode::kDevice, "fake", "it fails");
    double noise = std::uniform_real_distribution<double>(1, 1 + jitter)(random_);
    if (std::uniform_real_distribution<double>(0, 1)(random_) < disturbed) noise *= 5;
    return times_[candidate] * noise;
  }
  std::string check(size_t candidate) override { return candidate == wrong ? "it differs" : ""; }

 private:
  std::vector<double> times_;
  std::mt19937_64 random_{3};

 public:
  std::vector<int> runs;
  double jitter = 0.01, disturbed = 0;
  size_t wrong = 1000;
};

TEST(Tuner, FindsTheFastestAndItsGain) {
  FakeTrial trial({1.0, 1.5, 0.8, 1.2, 0.81});
  const TunerResult result = choose_fastest(trial, {});
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.winner, 2u);
  EXPECT_NEAR(result.gain, 1.25, 0.03);
  EXPECT_LT(result.spread, 0.02);
  EXPECT_TRUE(result.times[1].dropped);
  EXPECT_LT(trial.runs[1], 5);   // clearly slower: few runs
  EXPECT_EQ(trial.runs[0], 11);  // the pick stays to the end
}

TEST(Tuner, DisturbedRunsDecideNothing) {
  FakeTrial trial({1.0, 0.9, 1.02, 0.97});
  trial.jitter = 0.03, trial.disturbed = 0.2;
  TunerOptions options;
  options.rounds = 31;
  const TunerResult result = choose_fastest(trial, options);
  EXPECT_EQ(result.winner, 1u);
  EXPECT_NEAR(result.gain, 1.11, 0.06);
}

TEST(Tuner, AGainBelowTheMarginKeepsThePick) {
  FakeTrial trial({1.0, 0.99, 1.0});
  const TunerResult result = choose_fastest(trial, {});
  EXPECT_EQ(result.winner, 0u);
  EXPECT_EQ(result.gain, 1);
}

TEST(Tuner, WrongAndFailingCandidatesAreOut) {
  FakeTrial trial({1.0, 0.5, -1, 0.7});
  trial.wrong = 1;
  const TunerResult result = choose_fastest(trial, {});
  EXPECT_EQ(result.winner, 3u);
  EXPECT_EQ(result.times[1].failure, "it differs");
  EXPECT_THAT(result.times[2].failure, testing::HasSubstr("it fails"));
  EXPECT_EQ(trial.runs[1], 1);
  EXPECT_EQ(trial.runs[2], 1);
}

TEST(Tuner, WithoutAWorkingPickTheFastestWins) {
  FakeTrial trial({-1, 0.5, 0.4});
  const TunerResult result = choose_fastest(trial, {});
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.winner, 2u);
  FakeTrial none({-1, -1});
  EXPECT_FALSE(choose_fastest(none, {}).ok);
}

TEST(Tuner, NoBudgetStillMeasuresEachTwice) {
  FakeTrial trial({1.0, 0.5});
  TunerOptions options;
  options.budget_seconds = 0;
  const TunerResult result = choose_fastest(trial, options);
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(trial.runs[0], 2);
  EXPECT_EQ(result.winner, 1u);
}

TEST(Tuner, Percentiles) {
  EXPECT_EQ(median_of({}), 0);
  EXPECT_EQ(median_of({3}), 3);
  EXPECT_EQ(median_of({4, 1, 3}), 3);
  EXPECT_EQ(median_of({4, 1}), 2.5);
  EXPECT_EQ(percentile_of({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9), 9);
}

}  // namespace
}  // namespace heddle::tune
