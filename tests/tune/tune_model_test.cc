#include "driver/tune/tune_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>

#include "../driver/models.h"
#include "base/file/file.h"
#include "base/log.h"
#include "driver/api/model_impl.h"
#include "driver/compile/compile.h"
#include "driver/verify/random_inputs.h"
#include "jit/cache.h"
#include "tests/instances.h"

namespace heddle::driver {
namespace {

// x f32[1,8,12,12] -> 3x3 convolution (direct or Winograd), relu, 1x1 convolution, dense layer.
void write_conv_net(const std::string& path) {
  zoo::GraphBuilder g("conv-net", 17);
  const zoo::Value x = g.input("x", DType::kF32, {1, 8, 12, 12});
  const zoo::Value a = g.relu(zoo::conv(g, "a", x, {.out = 16, .pad = 1}));
  const zoo::Value b = g.relu(zoo::conv(g, "b", a, {.out = 24, .kernel = 1}));
  g.output(zoo::linear(g, "c", g.reshape(b, {12, 288}), 40), "y");
  zoo::write_model(g.finish(), 1, int64_t{1} << 30, path);
}

class TuneModel : public testing::Test {
 protected:
  TuneModel() {
    ::setenv("HEDDLE_CACHE_DIR", (dir_.path() + "/cache").c_str(), 1);
    write_conv_net(model_);
    options_.threads = 1;
    tuning_.budget_seconds = 2;
    tuning_.most = 3;
  }
  ~TuneModel() override { ::unsetenv("HEDDLE_CACHE_DIR"); }

  std::vector<Tensor> run() const {
    const Model model = Model::load(model_, options_);
    return model.run(random_inputs(*model.impl().primary().plan, 5));
  }
  // The names of the kernels' functions.
  std::vector<std::string> symbols() const {
    std::vector<std::string> list;
    for (const GroupReport& group : compile_model(model_, options_, false).report.groups) {
      for (const KernelReport& kernel : group.kernels) list.push_back(kernel.symbol);
    }
    return list;
  }
  void expect_near(const std::vector<Tensor>& a, const std::vector<Tensor>& b) const {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      const auto x = a[i].values<float>(), y = b[i].values<float>();
      ASSERT_EQ(x.size(), y.size());
      for (size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], y[k], 1e-3 * (1 + std::abs(x[k])));
    }
  }

  TempDir dir_;
  std::string model_ = dir_.path() + "/m.onnx";
  CompileOptions options_;
  TuneOptions tuning_;
};

TEST_F(TuneModel, MeasuresStoresAndIsUsedByLaterCompilations) {
  const std::vector<Tensor> before = run();
  const TuneReport report = tune_model(model_, options_, tuning_);
  ASSERT_EQ(report.problems.size(), 3u);
  EXPECT_EQ(report.note, "");
  for (const TunedProblem& p : report.problems) {
    if (!p.reached) continue;
    EXPECT_EQ(p.failure, "");
    EXPECT_FALSE(p.known);
    EXPECT_EQ(p.uses, 1u);
    EXPECT_GT(p.record.winner_us, 0);
    EXPECT_GE(p.record.samples, 1);
    EXPECT_GE(p.record.candidates, 2);
  }
  ASSERT_TRUE(report.problems[0].reached);

  const CompileReport explained = compile_model(model_, options_, false).report;
  EXPECT_EQ(explained.contractions, 3u);
  EXPECT_GE(explained.tuned, 1u);
  bool said = false;
  for (const GroupReport& group : explained.groups) {
    for (const KernelReport& kernel : group.kernels) said = said || kernel.reason.find("tuned: ") == 0;
  }
  EXPECT_TRUE(said);
  expect_near(before, run());

  // Known now; --again measures anew.
  const TuneReport second = tune_model(model_, options_, tuning_);
  EXPECT_TRUE(second.problems[0].known);
  EXPECT_EQ(second.problems[0].record.winner, report.problems[0].record.winner);
  tuning_.again = true;
  tuning_.budget_seconds = 0.01;
  EXPECT_FALSE(tune_model(model_, options_, tuning_).problems[0].known);
}

// Whatever the timings say here: each candidate as the winner gives a plan of its own with the same results.
TEST_F(TuneModel, EveryCandidateGivesTheSameResults) {
  const std::vector<Tensor> before = run();
  const std::vector<std::string> plain = symbols();
  tuning_.budget_seconds = 0.01;  // problems are known then; nothing but the first is measured
  const TuneReport report = tune_model(model_, options_, tuning_);
  const size_t taken = test::takes_all_instances() ? 2 : 1;
  size_t changed = 0;
  for (const TunedProblem& p : report.problems) {
    class Ask : public schedule::ConfigSource {
     public:
      std::vector<schedule::Config> list;
      std::string wanted;
      std::optional<schedule::Config> choose(const schedule::Problem& problem, const Candidates& candidates) override {
        if (problem.text == wanted) list = candidates();
        return std::nullopt;
      }
    } ask;
    ask.wanted = p.problem;
    const CompiledModel compiled = compile_model(model_, options_, false);
    for (const ir::Group& group : compiled.built.grouping.groups) {
      if (group.kind == ir::GroupKind::kContraction) {
        schedule::schedule(*compiled.optimised, group, Target::host_cpu(1), &ask);
      }
    }
    ASSERT_GE(ask.list.size(), 2u) << p.problem;
    std::set<std::string> names;
    for (const schedule::Config& config : ask.list) EXPECT_TRUE(names.insert(schedule::name_of(config)).second);
    // The last ones differ most from the pick.
    for (size_t i = ask.list.size() - taken; i < ask.list.size(); ++i) {
      tune::Record record;
      record.winner = schedule::name_of(ask.list[i]);
      tune::user_database().store(tune::place_of(Target::host_cpu(1)), p.problem, record);
      changed += symbols() != plain ? 1 : 0;
      expect_near(before, run());
    }
  }
  EXPECT_GE(changed, 3 * taken - 1);
  // Without what was tuned, the plan is the first again.
  options_.tuned = false;
  EXPECT_EQ(symbols(), plain);
}

TEST_F(TuneModel, PlansAreCachedByTheirChoices) {
  const auto from_cache = [&] { return Model::load(model_, options_).impl().primary().from_cache.plan; };
  EXPECT_FALSE(from_cache());
  EXPECT_TRUE(from_cache());
  tuning_.budget_seconds = 0.01;  // which problem is the first is all that is asked
  const TuneReport report = tune_model(model_, options_, tuning_);
  from_cache();  // compiles where another than the pick won, or takes the plan made before
  EXPECT_TRUE(from_cache());
  options_.tuned = false;
  EXPECT_TRUE(from_cache());
  options_.tuned = true;
  // A winner that no candidate carries any more is not used, and is no reason to compile again and again.
  tune::Record stale;
  stale.winner = "direct 7x7x7 of another version";
  tune::user_database().store(tune::place_of(Target::host_cpu(1)), report.problems[0].problem, stale);
  EXPECT_FALSE(from_cache());
  EXPECT_TRUE(from_cache());
  // Records of another machine do not matter.
  tune::Place elsewhere = tune::place_of(Target::host_cpu(1));
  elsewhere.device = "another";
  tune::user_database().store(elsewhere, report.problems[0].problem, stale);
  EXPECT_TRUE(from_cache());
}

TEST_F(TuneModel, ADamagedDatabaseIsBegunAnew) {
  set_log_sink([](LogLevel, std::string_view) {});
  make_directories(dir_.path() + "/cache");
  write_file(tune::user_database().path(), std::string(5000, '?'));
  EXPECT_EQ(compile_model(model_, options_, false).report.tuned, 0u);
  const TuneReport report = tune_model(model_, options_, tuning_);
  EXPECT_NE(report.note.find("set aside"), std::string::npos) << report.note;
  EXPECT_GE(compile_model(model_, options_, false).report.tuned, 1u);
  set_log_sink({});
}

TEST_F(TuneModel, AFolderThatCannotBeWrittenIsSaid) {
  ::setenv("HEDDLE_CACHE_DIR", "/proc/heddle", 1);
  options_.use_cache = false;
  const TuneReport report = tune_model(model_, options_, tuning_);
  EXPECT_NE(report.note.find("cannot be written"), std::string::npos) << report.note;
  EXPECT_EQ(report.problems[0].failure, "");
}

}  // namespace
}  // namespace heddle::driver
