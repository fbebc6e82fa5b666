#include "driver/compile/reused_configs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/file/file.h"
#include "driver/compile/compile.h"
#include "runtime/plan.h"
#include "tests/frontend/model_bytes.h"
#include "zoo/zoo.h"

namespace heddle::driver {
namespace {

using schedule::Config;

Config config(int64_t threads, double predicted_us) {
  Config made;
  made.choice = schedule::SelectConfig{threads};
  made.predicted_us = predicted_us;
  return made;
}

// Answers one problem as a tuner would.
class Measured : public schedule::ConfigSource {
 public:
  std::optional<Config> choose(const schedule::Problem& problem, const Candidates&) override {
    return problem.text == "measured" ? std::optional(config(512, 9)) : std::nullopt;
  }
};

std::string chosen(const KnownChoices& known, const schedule::Problem& problem, double second_us) {
  Measured inner;
  ReusedConfigs reused(inner, known);
  const Config made = schedule::choose_config(&reused, problem, [&] {
    return std::vector<Config>{config(64, 10), config(128, second_us), config(256, second_us)};
  });
  const KnownChoices noted = reused.take_chosen();
  EXPECT_EQ(noted.contains(problem.any_rows), !problem.any_rows.empty());
  if (noted.empty()) return schedule::name_of(made);
  EXPECT_EQ(noted.begin()->second, std::set{schedule::name_of(made)});
  return schedule::name_of(made);
}

TEST(ReusedConfigs, OfKernelsThatExistWhereTheyAreAboutAsFast) {
  const KnownChoices known = {{"any", {schedule::name_of(config(256, 1))}}};
  EXPECT_EQ(chosen(known, {"p", "any"}, 10.5), "topk threads=256");
  EXPECT_EQ(chosen(known, {"p", "any"}, 12), "topk threads=64");
  EXPECT_EQ(chosen(known, {"p", "other"}, 10.5), "topk threads=64");
  EXPECT_EQ(chosen(known, {"p"}, 10.5), "topk threads=64");
  EXPECT_EQ(chosen(known, {"p", "any"}, 0), "topk threads=64");  // nothing is predicted
  EXPECT_EQ(chosen(known, {"measured", "any"}, 10.5), "topk threads=512");
}

std::set<std::string> launched(const runtime::Plan& plan) {
  std::set<std::string> symbols;
  for (const runtime::Step& step : plan.steps) {
    if (const auto* kernels = std::get_if<runtime::CudaStep>(&step.action)) {
      for (const CudaLaunch& launch : kernels->launches) symbols.insert(launch.symbol);
    }
  }
  return symbols;
}

struct Count {
  size_t all = 0, missing = 0;
};

// Kernels of `batch` that a plan for a batch of 16 does not have, where known choices may be that much slower.
Count count_new(const char* model, int64_t batch, double most_slower) {
  CompileOptions options;
  options.target = "cuda", options.precision = "f16";
  TempDir dir;
  KnownChoices choices;
  std::set<std::string> known;
  Count count;
  for (const int64_t extent : {int64_t{16}, batch}) {
    const std::string path = dir.path() + "/model.onnx";
    zoo::Options made;
    made.batch = extent;
    if (model == std::string_view("resnet18")) made.size = 96;
    zoo::write(model, made, path);
    Session session(path, options);
    session.known_choices = choices;
    session.most_slower = most_slower;
    const CompiledModel compiled = compile_model(path, options, false, false, &session);
    const std::set<std::string> symbols = launched(*compiled.plan);
    count.all = symbols.size();
    count.missing = std::count_if(symbols.begin(), symbols.end(), [&](const auto& s) { return !known.contains(s); });
    choices = compiled.chosen;
    known = symbols;
  }
  return count;
}

TEST(ReusedConfigs, AnotherBatchNeedsFewerKernels) {
  for (const int64_t batch : {13, 24}) {
    const size_t about_as_fast = count_new("resnet18", batch, ReusedConfigs::kMostSlower).missing;
    EXPECT_LT(about_as_fast, count_new("resnet18", batch, 0).missing) << batch;
    const Count any = count_new("resnet18", batch, std::numeric_limits<double>::infinity());
    EXPECT_LE(10 * any.missing, any.all) << batch;
  }
}

}  // namespace
}  // namespace heddle::driver
