// Plans and models whose files change under Heddle's hands.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file/file.h"
#include "driver/api/model_impl.h"
#include "heddle/model.h"
#include "jit/cache.h"
#include "models.h"
#include "runtime/plan_io.h"
#include "tests/error_of.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using test::error_of;

class PlanGuard : public testing::Test {
 protected:
  PlanGuard() {
    ::setenv("HEDDLE_CACHE_DIR", path("cache").c_str(), 1);
    options_.threads = 2;
    test::write_mlp(path("a.onnx"), 2, 1);
    test::write_mlp(path("b.onnx"), 2, 99);
  }
  ~PlanGuard() override { ::unsetenv("HEDDLE_CACHE_DIR"); }

  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }
  std::vector<float> numbers(const Model& model) const {
    Tensor x(DType::kF32, {2, 8});
    std::fill_n(x.mutable_values<float>().begin(), 16, 0.5f);
    const Tensor y = model.run({{"x", x}})[0];
    return {y.values<float>().begin(), y.values<float>().end()};
  }
  std::vector<float> numbers(const std::string& name) const { return numbers(Model::load(path(name), options_)); }
  std::string cached_plan(const std::string& name) const {
    std::string file;
    plan_of_model(path(name), options_, nullptr, &file);
    return file;
  }

  TempDir dir_;
  CompileOptions options_;
};

TEST_F(PlanGuard, APlanUnderTheNameOfAnotherIsNotUsed) {
  const std::vector<float> a = numbers("a.onnx"), b = numbers("b.onnx");
  ASSERT_NE(a, b);
  const std::string plan_a = cached_plan("a.onnx"), plan_b = cached_plan("b.onnx");
  ASSERT_NE(plan_a, plan_b);
  fs::copy_file(plan_b, plan_a, fs::copy_options::overwrite_existing);  // writes into the file
  EXPECT_EQ(numbers("a.onnx"), a);
  EXPECT_EQ(numbers("b.onnx"), b);
  EXPECT_TRUE(Model::load(path("a.onnx"), options_).impl().primary().from_cache.plan) << "it was made again";
  fs::rename(cached_plan("b.onnx"), cached_plan("a.onnx"));
  EXPECT_EQ(numbers("a.onnx"), a);
}

TEST_F(PlanGuard, APlanKnowsWhatItWasMadeFrom) {
  const auto plan = plan_of_model(path("a.onnx"), options_);
  EXPECT_NE(plan->key, Hash128());
  Model::load(path("a.onnx"), options_).save(path("a.plan"));
  EXPECT_EQ(runtime::read_plan(path("a.plan"), 1)->key, plan->key);
  EXPECT_NE(plan_of_model(path("b.onnx"), options_)->key, plan->key);
}

TEST_F(PlanGuard, WhoOverwritesOrShortensALoadedPlanChangesNothing) {
  Model::load(path("a.onnx"), options_).save(path("a.plan"));
  Model::load(path("b.onnx"), options_).save(path("b.plan"));
  const Model model = Model::load(path("a.plan"), options_);
  const std::vector<float> before = numbers(model);
  fs::copy_file(path("b.plan"), path("a.plan"), fs::copy_options::overwrite_existing);
  EXPECT_EQ(numbers(model), before);
  ASSERT_EQ(::truncate(path("a.plan").c_str(), 0), 0);
  EXPECT_EQ(numbers(model), before);
}

TEST_F(PlanGuard, APlanThatOthersMayWriteIsRefused) {
  Model::load(path("a.onnx"), options_).save(path("a.plan"));
  ASSERT_EQ(::chmod(path("a.plan").c_str(), 0666), 0);
  const Error error = error_of([&] { Model::load(path("a.plan"), options_); });
  EXPECT_EQ(error.code(), ErrorCode::kFile);
  EXPECT_NE(error.remedy().find("chmod go-w"), std::string::npos) << error.what();
  ASSERT_EQ(::chmod(path("a.plan").c_str(), 0644), 0);
  EXPECT_FALSE(numbers("a.plan").empty());
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(path("a.plan").c_str(), 12345, 0), 0);
  EXPECT_NE(error_of([&] { Model::load(path("a.plan"), options_); }).why().find("12345"), std::string::npos);
  fs::copy_file(path("a.plan"), path("copy.plan"));
  EXPECT_FALSE(numbers("copy.plan").empty());
}

// What is compiled after the change must not be kept under the key of what was there before.
TEST_F(PlanGuard, AModelThatChangesWhileItIsCompiledIsNotCached) {
  const std::vector<float> a = numbers("a.onnx"), b = numbers("b.onnx");
  jit::Cache::of_user().clear();
  fs::copy_file(path("a.onnx"), path("m.onnx"));
  CompileOptions changing = options_;
  changing.progress = [&](const std::string& stage, double) {
    if (stage == "import") fs::copy_file(path("b.onnx"), path("m.onnx"), fs::copy_options::overwrite_existing);
  };
  EXPECT_EQ(numbers(Model::load(path("m.onnx"), changing)), b);
  fs::copy_file(path("a.onnx"), path("m.onnx"), fs::copy_options::overwrite_existing);
  EXPECT_EQ(numbers("m.onnx"), a);
}

TEST_F(PlanGuard, AModelIsReadBeforeItIsUsed) {
  CompileOptions shortening = options_;
  shortening.progress = [&](const std::string& stage, double) {
    if (stage != "passes") return;
    EXPECT_EQ(::truncate(path("a.onnx").c_str(), 10), 0);
  };
  EXPECT_EQ(numbers(Model::load(path("a.onnx"), shortening)).size(), 8u);
}

}  // namespace
}  // namespace heddle
