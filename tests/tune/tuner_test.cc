#include "tune/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "base/check.h"

namespace heddle::tune {
namespace {

class FakeCounter : public EnergyCounter {
 public:
  FakeCounter() : EnergyCounter("a fake") {}
  double joules() override { return sum; }
  double sum = 0;
};

// Candidates with known times under noise, and known energies.
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
  void repeat(size_t candidate, int64_t runs) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(1e-5 * static_cast<double>(runs)));
    if (counter != nullptr) counter->sum += joules[candidate] * static_cast<double>(runs);
  }

 private:
  std::vector<double> times_;
  std::mt19937_64 random_{3};

 public:
  std::vector<int> runs;
  std::vector<double> joules;
  FakeCounter* counter = nullptr;
  double jitter = 0.01, disturbed = 0;
  size_t wrong = 1000;
};

TEST(Tuner, FindsTheFastestAndItsGain) {
  FakeTrial trial({1.0, 1.5, 0.8, 1.2, 0.81});
  const TunerResult result = choose_best(trial, {});
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
  const TunerResult result = choose_best(trial, options);
  EXPECT_EQ(result.winner, 1u);
  EXPECT_NEAR(result.gain, 1.11, 0.06);
}

TEST(Tuner, AGainBelowTheMarginKeepsThePick) {
  FakeTrial trial({1.0, 0.99, 1.0});
  const TunerResult result = choose_best(trial, {});
  EXPECT_EQ(result.winner, 0u);
  EXPECT_EQ(result.gain, 1);
}

TEST(Tuner, WrongAndFailingCandidatesAreOut) {
  FakeTrial trial({1.0, 0.5, -1, 0.7});
  trial.wrong = 1;
  const TunerResult result = choose_best(trial, {});
  EXPECT_EQ(result.winner, 3u);
  EXPECT_EQ(result.times[1].failure, "it differs");
  EXPECT_THAT(result.times[2].failure, testing::HasSubstr("it fails"));
  EXPECT_EQ(trial.runs[1], 1);
  EXPECT_EQ(trial.runs[2], 1);
}

TEST(Tuner, WithoutAWorkingPickTheFastestWins) {
  FakeTrial trial({-1, 0.5, 0.4});
  const TunerResult result = choose_best(trial, {});
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.winner, 2u);
  FakeTrial none({-1, -1});
  EXPECT_FALSE(choose_best(none, {}).ok);
}

TEST(Tuner, NoBudgetStillMeasuresEachTwice) {
  FakeTrial trial({1.0, 0.5});
  TunerOptions options;
  options.budget_seconds = 0;
  const TunerResult result = choose_best(trial, options);
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(trial.runs[0], 2);
  EXPECT_EQ(result.winner, 1u);
}

TEST(Tuner, RanksByEnergyAmongThoseThatAreNotClearlySlower) {
  FakeTrial trial({1.0, 2.0, 1.05, 0.98});
  FakeCounter counter;
  trial.counter = &counter;
  trial.joules = {0.010, 0.001, 0.008, 0.012};
  TunerOptions options;
  options.energy = &counter;
  options.energy_seconds = 0.01;
  const TunerResult result = choose_best(trial, options);
  EXPECT_EQ(result.winner, 2u);
  EXPECT_NEAR(result.gain, 1.25, 1e-6);
  EXPECT_NEAR(result.times[3].joules, 0.012, 1e-8);
  EXPECT_EQ(result.times[1].joules, 0);  // dropped for its time
  const Record record = record_of(result, "winner", "pick");
  EXPECT_TRUE(record.by_energy());
  EXPECT_NEAR(record.winner_uj, 8000, 1e-3);
  EXPECT_NEAR(record.pick_uj, 10000, 1e-3);
  EXPECT_LT(record.pick_us, record.winner_us);
  EXPECT_NEAR(record.gain(), 1.25, 1e-6);
}

TEST(Tuner, ACounterThatStandsStillRanksNobody) {
  FakeTrial trial({1.0});
  FakeCounter counter;
  TunerOptions options;
  options.energy = &counter;
  const TunerResult result = choose_best(trial, options);
  EXPECT_FALSE(result.ok);
  EXPECT_THAT(result.times[0].failure, testing::HasSubstr("did not change"));
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
