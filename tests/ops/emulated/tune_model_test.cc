// Tuning a model for a GPU, on the emulator: the winners mean nothing, but everything on the way does.
#include "driver/tune/tune_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "../../driver/models.h"
#include "base/file/file.h"
#include "driver/compile/compile.h"

namespace heddle::driver {
namespace {

TEST(TuneOnEmulator, WinnersAreStoredAndResultsStay) {
  ::setenv("HEDDLE_CUDA_DRIVER", HEDDLE_EMULATOR, 0);
  ::setenv("HEDDLE_EMULATED_SMS", "8", 1);
  const TempDir dir;
  ::setenv("HEDDLE_CACHE_DIR", (dir.path() + "/cache").c_str(), 1);
  const std::string model = dir.path() + "/m.onnx";
  test::write_mlp(model, 3);
  CompileOptions options;
  options.target = "cuda";
  options.threads = 1;
  TuneOptions tuning;
  tuning.budget_seconds = 4;
  tuning.most = 2;
  const TuneReport report = tune_model(model, options, tuning);
  ASSERT_GE(report.problems.size(), 1u);
  for (const TunedProblem& p : report.problems) {
    EXPECT_EQ(p.failure, "") << p.problem;
    EXPECT_GE(p.record.samples, p.reached ? 1 : 0);
  }
  ASSERT_TRUE(report.problems[0].reached);
  EXPECT_TRUE(tune_model(model, options, tuning).problems[0].known);
  EXPECT_GE(compile_model(model, options, false).report.tuned, 1u);

  Tensor x(DType::kF32, {3, 8});
  for (size_t i = 0; i < 24; ++i) x.mutable_values<float>()[i] = 0.1F * static_cast<float>(i % 7) - 0.3F;
  const std::vector<Tensor> gpu = Model::load(model, options).run({{"x", x}});
  options.target = "cpu";
  const std::vector<Tensor> cpu = Model::load(model, options).run({{"x", x}});
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(gpu[0].values<float>()[i], cpu[0].values<float>()[i], 1e-5);
}

}  // namespace
}  // namespace heddle::driver
