#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "driver/compile/compile.h"
#include "driver/plan/reference.h"
#include "driver/report/inside/fused_kernels.h"
#include "driver/report/inside/sample_inside.h"
#include "models.h"
#include "runtime/executor.h"

namespace heddle {
namespace {

class Inside : public testing::Test {
 protected:
  Inside() { ::setenv("HEDDLE_CACHE_DIR", (dir_.path() + "/cache").c_str(), 1); }
  ~Inside() override { ::unsetenv("HEDDLE_CACHE_DIR"); }

  // x f32[64,1024] -> what is made of it
  driver::CompiledModel compiled(std::vector<onnx::NodeSpec> nodes, const CompileOptions& options) const {
    onnx::GraphSpec graph;
    graph.nodes = std::move(nodes);
    graph.inputs = {{"x", DType::kF32, {64, 1024}}};
    graph.outputs = {"y"};
    graph.initializers = {{"w", test::random_floats({1024, 32}, 1)}};
    const std::string path = dir_.path() + "/m.onnx";
    write_file(path, onnx::model_bytes(graph, 17));
    return driver::compile_model(path, options);
  }

  // The shares of the only step that has several nodes, by node of the model, when there are enough samples.
  std::map<std::string, double> shares(const driver::CompiledModel& model, const CompileOptions& options) const {
    const Target target = driver::resolve(options).target;
    const auto executor =
        runtime::make_executor(model.plan, std::make_shared<ThreadPool>(1), driver::reference_interpreter());
    const std::vector<Tensor> inputs = {test::random_floats({64, 1024}, 2)};
    const auto run = [&](const std::function<void(int64_t)>& next) {
      next(0);
      executor->run(inputs, [&](size_t step, const auto&) { next(static_cast<int64_t>(step) + 1); });
      next(-1);
    };
    std::map<std::string, double> by_name;
    for (int attempt = 0; attempt < 100 && by_name.empty(); ++attempt) {
      const driver::InsideShares inside = driver::sample_inside(model, target, 0.2, run);
      EXPECT_EQ(inside.why_none, "");
      EXPECT_EQ(inside.by_step.size(), model.plan->steps.size());
      for (size_t step = 0; step < inside.by_step.size(); ++step) {
        const std::vector<double>& of = inside.by_step[step];
        if (of.empty()) continue;
        EXPECT_NEAR(std::accumulate(of.begin(), of.end(), 0.0), 1, 1e-9);
        const ir::Group& group = model.built.grouping.groups[static_cast<size_t>(model.built.step_group[step])];
        for (size_t i = 0; i < of.size(); ++i) {
          const ir::Node& node = model.optimised->node(group.nodes[i]);
          if (!node.origins.empty()) by_name[model.optimised->origin(node.origins[0]).op_type] += of[i];
        }
      }
    }
    return by_name;
  }

  TempDir dir_;
};

TEST_F(Inside, SamplesSayWhichNodeOfALoopNestTakesTheTime) {
  CompileOptions options;
  options.threads = 1;
  // Two nodes that compute much, and two that do not.
  const auto model = compiled(
      {{"Sin", {"x"}, {"a"}}, {"Neg", {"a"}, {"b"}}, {"Erf", {"b"}, {"c"}}, {"Add", {"c", "x"}, {"y"}}}, options);
  const std::map<std::string, double> of = shares(model, options);
  ASSERT_TRUE(of.contains("Sin") && of.contains("Erf") && of.contains("Add"));
  EXPECT_GT(of.at("Sin"), of.at("Add"));
  EXPECT_GT(of.at("Erf"), of.at("Add"));
}

TEST_F(Inside, WhatATemplateDoesIsOfItsProduct) {
  CompileOptions options;
  options.threads = 1;
  const auto model = compiled({{"MatMul", {"x", "w"}, {"a"}}, {"Relu", {"a"}, {"y"}}}, options);
  const std::map<std::string, double> of = shares(model, options);
  ASSERT_TRUE(of.contains("MatMul") && of.contains("Relu"));
  EXPECT_GT(of.at("MatMul"), of.at("Relu"));
}

// A kernel has the open batch as an argument, which its text for this batch alone has not.
TEST_F(Inside, KernelsOfAnOpenBatchAreKnown) {
  onnx::GraphSpec graph;
  graph.nodes = {{"Sin", {"x"}, {"a"}}, {"Erf", {"a"}, {"y"}}};
  graph.inputs = {{"x", DType::kF32, {-1, 1024}}};
  graph.outputs = {"y"};
  const std::string path = dir_.path() + "/open.onnx";
  write_file(path, onnx::model_bytes(graph, 17));
  CompileOptions options;
  options.threads = 1;
  options.shapes = {{"x", {4, 1024}}};
  const driver::CompiledModel model = driver::compile_model(path, options, false);
  driver::FusedKernels kernels(model, driver::resolve(options).target);
  EXPECT_EQ(kernels.steps(), 1U);
  ASSERT_EQ(kernels.all().size(), 1U);
  EXPECT_FALSE(model.kernels.text_of(kernels.all().begin()->first).as_arguments.empty());
}

TEST_F(Inside, WaitsForMemoryAreDividedByBytes) {
  CompileOptions options;
  options.threads = 1;
  const auto model = compiled({{"Sin", {"x"}, {"a"}}, {"Neg", {"a"}, {"y"}}}, options);
  driver::FusedKernels kernels(model, driver::resolve(options).target);
  ASSERT_EQ(kernels.all().size(), 1U);
  driver::FusedKernel& kernel = kernels.all().begin()->second;
  const auto shares = [&] { return kernels.shares().at(0); };
  EXPECT_TRUE(shares().empty()) << "no samples";
  const ir::Group& group = *kernel.group;
  const auto sin =
      static_cast<size_t>(std::find_if(group.nodes.begin(), group.nodes.end(),
                                       [&](ir::NodeId id) { return model.optimised->node(id).op == ir::Op::kSin; }) -
                          group.nodes.begin());
  ASSERT_LT(sin, group.nodes.size());
  kernel.samples[sin] = 500;
  EXPECT_NEAR(shares().at(sin), 1, 1e-9);
  // Sin reads x, what comes last writes y.
  kernel.memory = 500;
  EXPECT_NEAR(shares().at(sin), 0.75, 1e-9);
  kernel.samples.assign(kernel.samples.size(), 0);
  EXPECT_NEAR(shares().at(sin), 0.5, 1e-9);
  // What is at no line is, without nodes that have none, divided as the lines are.
  kernel.samples[sin] = 400;
  kernels.count(kernel, std::nullopt, 100);
  EXPECT_NEAR(shares().at(sin), 0.75, 1e-9);
}

}  // namespace
}  // namespace heddle
