// Products of equal form that share a launch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file/file.h"
#include "cuda_plans.h"
#include "driver/compile/compile.h"
#include "driver/verify/verify.h"

namespace heddle {
namespace {

constexpr const char* kContractRows = "{lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [0]}";

class SideBySideTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "there is no GPU";
    options_.target = "cuda";
  }

  // The labels of the products of a graph that agrees with the reference.
  std::vector<std::string> products(const std::string& text) {
    const std::string path = dir_.path() + "/graph.hir";
    write_file(path, text);
    EXPECT_TRUE(driver::verify(path, options_, {}, 5).ok);
    const driver::CompiledModel model = driver::compile_model(path, options_);
    std::vector<std::string> labels;
    for (const runtime::Step& step : model.plan->steps) {
      if (step.label.find("gemm") != std::string::npos) labels.push_back(step.label);
    }
    return labels;
  }

  TempDir dir_;
  runtime::Variable cache_{"HEDDLE_CACHE_DIR", dir_.path() + "/cache"};
  CompileOptions options_;
};

// Gradients of three matrices, each with a vector of its own.
TEST_F(SideBySideTest, IndependentProductsShareALaunch) {
  const auto gradients = [](const char* type, int rows, int width) {
    std::string text = "graph g(";
    for (const char* name : {"a", "b", "c"}) {
      text += fmt::format("%{}: {}[{},{}], %v{}: f32[{}], ", name, type, rows, width, name, width);
    }
    text += fmt::format("%x: {}[{},{}]) {{\n", type, rows, width);
    for (const char* name : {"a", "b", "c"}) {
      text += fmt::format(
          "  %p{0} = dot(%{0}, %x) {1}\n  %f{0} = cast(%p{0}) {{to = f32}}\n"
          "  %b{0} = broadcast(%v{0}) {{shape = [{2},{2}], dims = [1]}}\n  %y{0} = add(%f{0}, %b{0})\n",
          name, kContractRows, width);
    }
    return text + "  return \"a\" = %ya, \"b\" = %yb, \"c\" = %yc\n}\n";
  };
  for (const auto& [type, rows, width] :
       {std::tuple("bf16", 512, 136), std::tuple("f16", 1024, 72), std::tuple("f16", 1000, 264)}) {
    const auto labels = products(gradients(type, rows, width));
    ASSERT_EQ(labels.size(), 1u) << type << rows;
    EXPECT_NE(labels[0].find("3 side by side"), std::string::npos) << labels[0];
  }
}

TEST_F(SideBySideTest, ProductsThatDependOnEachOtherStayApart) {
  const auto labels =
      products(fmt::format("graph g(%a: f16[256,256], %x: f16[256,256]) {{\n"
                           "  %p = dot(%a, %x) {0}\n  %s = reduce(%p) {{kind = \"max\", dims = [0]}}\n"
                           "  %w = broadcast(%s) {{shape = [256,256], dims = [1]}}\n  %b = max(%w, %a)\n"
                           "  %q = dot(%b, %x) {0}\n  return \"p\" = %p, \"q\" = %q\n}}\n",
                           kContractRows));
  EXPECT_EQ(labels.size(), 2u);
}

// Options that keep kernels apart keep products apart.
TEST_F(SideBySideTest, TheyStayApartOnRequest) {
  options_.disabled_stitching = {"global"};
  const auto labels =
      products(fmt::format("graph g(%a: f16[512,136], %b: f16[512,136], %x: f16[512,136]) {{\n"
                           "  %p = dot(%a, %x) {0}\n  %q = dot(%b, %x) {0}\n  return \"p\" = %p, \"q\" = %q\n}}\n",
                           kContractRows));
  EXPECT_EQ(labels.size(), 2u);
}

}  // namespace
}  // namespace heddle
