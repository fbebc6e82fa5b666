// Models that run with many shapes: results, what needs a compiler, what stays in memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "base/file/file.h"
#include "base/log.h"
#include "driver/api/model_impl.h"
#include "driver/shapes/ranges.h"
#include "driver/verify/verify.h"
#include "heddle/model.h"
#include "ir/reference/array.h"
#include "ir/text/text.h"
#include "models.h"
#include "target/target.h"
#include "tests/error_of.h"
#include "tests/frontend/model_bytes.h"
#include "tests/passes/empty_graphs.h"

namespace heddle {
namespace {

using onnx::floats;
using onnx::GraphSpec;
using onnx::longs;
using test::error_of;
using test::random_floats;

Tensor weight(const Shape& shape, uint32_t seed) {
  Tensor tensor = random_floats(shape, seed);
  for (float& value : tensor.mutable_values<float>()) value *= 0.2F;
  return tensor;
}

constexpr int64_t kWidth = 24, kHeads = 3;

// For what does not depend on the model: y = softmax(x w) v.
GraphSpec rows() {
  GraphSpec graph;
  graph.nodes = {{"MatMul", {"x", "w"}, {"z"}},
                 {"Softmax", {"z"}, {"weights"}, {{"axis", int64_t{-1}}}},
                 {"MatMul", {"weights", "v"}, {"y"}}};
  graph.inputs = {{"x", DType::kF32, {-1, kWidth}}};
  graph.outputs = {"y"};
  graph.initializers = {{"w", weight({kWidth, kWidth}, 1)}, {"v", weight({kWidth, kWidth}, 2)}};
  return graph;
}

std::map<std::string, Tensor> rows_inputs(int64_t count) {
  return {{"x", random_floats({count, kWidth}, static_cast<uint32_t>(count))}};
}

// Masked self-attention with a residual sum and its norm over x [batch, seq, 24]; `mean` is over the sequence.
GraphSpec attention() {
  const auto heads = [](const std::string& from, const std::string& to) {
    return std::vector<onnx::NodeSpec>{
        {"Reshape", {from, "split"}, {to + "_split"}},
        {"Transpose", {to + "_split"}, {to}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}}};
  };
  GraphSpec graph;
  const auto add = [&](std::vector<onnx::NodeSpec> nodes) {
    graph.nodes.insert(graph.nodes.end(), nodes.begin(), nodes.end());
  };
  add({{"MatMul", {"x", "wq"}, {"q0"}}, {"MatMul", {"x", "wk"}, {"k0"}}, {"MatMul", {"x", "wv"}, {"v0"}}});
  add(heads("q0", "q")), add(heads("k0", "k")), add(heads("v0", "v"));
  add({{"Transpose", {"k"}, {"kt"}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}}},
       {"MatMul", {"q", "kt"}, {"scores"}},
       {"Unsqueeze", {"mask", "mask_axes"}, {"wide_mask"}},
       {"Add", {"scores", "wide_mask"}, {"masked"}},
       {"Softmax", {"masked"}, {"weights"}, {{"axis", int64_t{-1}}}},
       {"MatMul", {"weights", "v"}, {"mixed"}},
       {"Transpose", {"mixed"}, {"moved"}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}},
       {"Reshape", {"moved", "join"}, {"joined"}},
       {"Add", {"joined", "x"}, {"sum"}},
       {"LayerNormalization", {"sum", "ones", "zeros"}, {"y"}, {{"axis", int64_t{-1}}}},
       {"ReduceMean", {"y"}, {"mean"}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}}}});
  graph.inputs = {{"x", DType::kF32, {-1, -1, kWidth}}, {"mask", DType::kF32, {-1, -1}}};
  graph.outputs = {"y", "mean"};
  graph.initializers = {{"wq", weight({kWidth, kWidth}, 1)},
                        {"wk", weight({kWidth, kWidth}, 2)},
                        {"wv", weight({kWidth, kWidth}, 3)},
                        {"split", longs({4}, {0, 0, kHeads, kWidth / kHeads})},
                        {"join", longs({3}, {0, 0, kWidth})},
                        {"mask_axes", longs({2}, {1, 2})},
                        {"ones", floats({kWidth}, std::vector<float>(kWidth, 1))},
                        {"zeros", floats({kWidth}, std::vector<float>(kWidth, 0))}};
  return graph;
}

std::map<std::string, Tensor> attention_inputs(int64_t batch, int64_t seq) {
  Tensor mask(DType::kF32, {batch, seq});
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = seq * (b + 1) / (b + 2) + 1; i < seq; ++i)
      mask.mutable_values<float>()[static_cast<size_t>(b * seq + i)] = -1e9F;
  }
  return {{"x", random_floats({batch, seq, kWidth}, static_cast<uint32_t>(seq))}, {"mask", mask}};
}

void expect_as_reference(const GraphSpec& graph, const std::vector<PortInfo>& ports, const std::vector<Tensor>& outputs,
                         const std::map<std::string, Tensor>& inputs) {
  const auto expected = onnx::run_spec(graph, inputs, 17);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ir::Array& reference = expected.at(ports[i].name);
    ASSERT_EQ(outputs[i].shape(), reference.shape) << ports[i].name;
    const auto values = outputs[i].values<float>();
    for (size_t k = 0; k < values.size(); ++k) {
      ASSERT_NEAR(values[k], reference.f()[k], 1e-4 * (1 + std::abs(reference.f()[k]))) << ports[i].name << " " << k;
    }
  }
}

class Shapes : public testing::Test {
 protected:
  Shapes() { ::setenv("HEDDLE_CACHE_DIR", (dir_.path() + "/cache").c_str(), 1); }
  ~Shapes() override { ::unsetenv("HEDDLE_CACHE_DIR"); }

  std::string model(const GraphSpec& graph) const {
    const std::string path = dir_.path() + "/model.onnx";
    write_file(path, onnx::model_bytes(graph, 17));
    return path;
  }
  // How often the compiler made a library. The cache keeps each twice, with and without a table of lines.
  size_t libraries() const {
    size_t count = 0;
    std::error_code error;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(dir_.path() + "/cache/library", error)) {
      ++count;
    }
    return count / 2;
  }
  TempDir dir_;
};

CompileOptions at(int64_t batch, int64_t seq) {
  CompileOptions options;
  options.threads = 2;
  options.shapes = {{"x", {batch, seq, kWidth}}, {"mask", {batch, seq}}};
  return options;
}

CompileOptions of_rows(int64_t count) {
  CompileOptions options;
  options.threads = 2;
  options.shapes = {{"x", {count, kWidth}}};
  return options;
}

// Extents of 1, primes, multiples of vectors and their neighbours, and after a dozen lengths hardly one that needs
// the compiler.
TEST_F(Shapes, AttentionOfAnyLengthIsRightAndSeldomCompiled) {
  const GraphSpec graph = attention();
  const Model m = Model::load(model(graph), at(1, 20));
  const auto run = [&](int64_t batch, int64_t seq) {
    SCOPED_TRACE(fmt::format("batch {}, length {}", batch, seq));
    const auto inputs = attention_inputs(batch, seq);
    expect_as_reference(graph, m.outputs(), m.run(inputs), inputs);
  };
  const size_t first = libraries();
  for (const int64_t seq : {21, 1, 7, 16, 17, 33, 64, 100}) run(1, seq);
  // Vectors of 16 elements are longer than some of these, and kernels of a part of a vector are their own.
  const size_t most = Target::host_cpu().cpu.lanes_f32() > 8 ? 7 : 6;
  EXPECT_LE(libraries(), first + most) << "of 8 lengths";
  for (const int64_t seq : {1, 16, 23}) run(3, seq);
  const size_t before = libraries();
  for (int64_t seq = 66; seq < 100; ++seq) run(1, seq);
  EXPECT_LE(libraries(), before + 2) << "of 34 lengths";
}

// A decoder's step: the cache grows by what is new.
GraphSpec growing_cache() {
  GraphSpec graph;
  graph.nodes = {{"Concat", {"past", "new"}, {"present"}, {{"axis", int64_t{2}}}},
                 {"Transpose", {"present"}, {"kt"}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}}},
                 {"MatMul", {"new", "kt"}, {"scores"}},
                 {"Softmax", {"scores"}, {"weights"}, {{"axis", int64_t{-1}}}},
                 {"MatMul", {"weights", "present"}, {"mixed"}}};
  graph.inputs = {{"past", DType::kF32, {1, 2, -1, 8}}, {"new", DType::kF32, {1, 2, 1, 8}}};
  graph.outputs = {"mixed", "present"};
  return graph;
}

TEST_F(Shapes, ADecoderWithAGrowingCacheNeedsTheCompilerForFewTokens) {
  const GraphSpec graph = growing_cache();
  CompileOptions options;
  options.threads = 2;
  options.shapes["past"] = {1, 2, 0, 8};
  const Model m = Model::load(model(graph), options);
  Tensor past(DType::kF32, {1, 2, 0, 8});
  for (uint32_t token = 0; token < 100; ++token) {
    SCOPED_TRACE(fmt::format("token {}", token));
    const std::map<std::string, Tensor> inputs{{"past", past}, {"new", random_floats({1, 2, 1, 8}, token)}};
    const std::vector<Tensor> outputs = m.run(inputs);
    if (token > 0) expect_as_reference(graph, m.outputs(), outputs, inputs);
    past = outputs[1];
  }
  EXPECT_LE(libraries(), 5u);
}

TEST_F(Shapes, ExtentsOfZeroAgreeWithTheReference) {
  const std::string path = dir_.path() + "/empty.hir";
  write_file(path, ir::print(passes::empty_graphs_in_one()));
  EXPECT_TRUE(driver::verify(path, {}, {}, 1).ok);
}

TEST_F(Shapes, ABatchOfZeroIsOneOfMany) {
  GraphSpec graph;
  graph.nodes = {{"MatMul", {"x", "w"}, {"a"}}, {"Relu", {"a"}, {"b"}}, {"MatMul", {"b", "v"}, {"y"}}};
  graph.inputs = {{"x", DType::kF32, {-1, kWidth}}};
  graph.outputs = {"y"};
  graph.initializers = {{"w", weight({kWidth, 40}, 1)}, {"v", weight({40, 8}, 2)}};
  CompileOptions options;
  options.shapes["x"] = {0, kWidth};
  const Model m = Model::load(model(graph), options);
  for (const int64_t batch : {0, 3, 0}) {
    const std::map<std::string, Tensor> inputs = {{"x", random_floats({batch, kWidth}, 5)}};
    expect_as_reference(graph, m.outputs(), m.run(inputs), inputs);
  }
}

TEST_F(Shapes, PlansShareTheirConstants) {
  const Model m = Model::load(model(rows()), of_rows(20));
  m.run(rows_inputs(30));
  m.run(rows_inputs(40));
  const auto variants = m.impl().variants();
  ASSERT_EQ(variants.size(), 2u);
  size_t shared = 0;
  for (const Tensor& constant : variants[0]->plan->constants) {
    for (const Tensor& other : variants[1]->plan->constants) {
      shared += constant.bytes() >= kWidth * kWidth * sizeof(float) && constant.data() == other.data();
    }
  }
  EXPECT_GE(shared, 2u);  // the weights
}

TEST_F(Shapes, PlansThatWereNotUsedForLongestGo) {
  CompileOptions options = of_rows(20);
  options.max_plans = 3;
  const Model m = Model::load(model(rows()), options);
  const auto lengths = [&] {
    std::vector<int64_t> list;
    for (const auto& variant : m.impl().variants()) list.push_back(variant->plan->inputs[0].shape[0]);
    return list;
  };
  for (const int64_t count : {21, 22, 23, 21, 24}) m.run(rows_inputs(count));
  EXPECT_EQ(lengths(), (std::vector<int64_t>{24, 21, 23}));
  std::weak_ptr<const runtime::Plan> oldest = m.impl().variants().back()->plan;
  for (const int64_t count : {20, 25}) m.run(rows_inputs(count));
  EXPECT_EQ(lengths(), (std::vector<int64_t>{25, 24, 21}));
  EXPECT_TRUE(oldest.expired());
}

TEST_F(Shapes, OnePlanStaysHoweverMuchMemoryItNeeds) {
  CompileOptions options = of_rows(20);
  options.max_plan_bytes = 1;
  const Model m = Model::load(model(rows()), options);
  for (const int64_t count : {21, 22}) m.run(rows_inputs(count));
  ASSERT_EQ(m.impl().variants().size(), 1u);
}

TEST_F(Shapes, RunsOfOtherShapesAtOnceKeepWhatTheyUse) {
  CompileOptions options = of_rows(20);
  options.max_plans = 1;
  const GraphSpec graph = rows();
  const Model m = Model::load(model(graph), options);
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t round = 0; round < 4; ++round) {
        const auto inputs = rows_inputs(20 + 3 * t + round);
        expect_as_reference(graph, m.outputs(), m.run(inputs), inputs);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(Shapes, ARangeIsCompiledForItsLargestExtentsAndCoversTheOthers) {
  const GraphSpec graph = growing_cache();
  CompileOptions options;
  options.threads = 2;
  options.ranges["past.2"] = {0, 12};
  const Model m = Model::load(model(graph), options);
  EXPECT_EQ(m.inputs()[0].shape, (Shape{1, 2, 12, 8}));
  for (const int64_t past : {3, 11, 12, 13}) {
    const std::map<std::string, Tensor> inputs{{"past", random_floats({1, 2, past, 8}, 1)},
                                               {"new", random_floats({1, 2, 1, 8}, 2)}};
    expect_as_reference(graph, m.outputs(), m.run(inputs), inputs);
  }
}

// Convolutions of 3x3 and 1x1 with a residual sum, pooling and a classifier over x [batch, 16, 18, 18].
GraphSpec convolutions() {
  const std::vector<int64_t> two{2, 2}, ones{1, 1, 1, 1};
  GraphSpec graph;
  graph.nodes = {{"Conv", {"x", "w1", "b1"}, {"c1"}, {{"pads", ones}, {"strides", two}}},
                 {"Relu", {"c1"}, {"r1"}},
                 {"Conv", {"r1", "w2"}, {"c2"}},
                 {"Sigmoid", {"c2"}, {"s2"}},
                 {"Conv", {"s2", "w3"}, {"c3"}},
                 {"Add", {"c3", "r1"}, {"sum"}},
                 {"MaxPool", {"sum"}, {"p1"}, {{"kernel_shape", two}, {"strides", two}}},
                 {"GlobalAveragePool", {"p1"}, {"p2"}},
                 {"Flatten", {"p2"}, {"flat"}},
                 {"Gemm", {"flat", "w4"}, {"logits"}},
                 {"Softmax", {"logits"}, {"y"}, {{"axis", int64_t{-1}}}}};
  graph.inputs = {{"x", DType::kF32, {-1, 16, 18, 18}}};
  graph.outputs = {"y"};
  graph.initializers = {{"w1", weight({24, 16, 3, 3}, 1)},
                        {"b1", weight({24}, 2)},
                        {"w2", weight({40, 24, 1, 1}, 3)},
                        {"w3", weight({24, 40, 1, 1}, 4)},
                        {"w4", weight({24, 7}, 5)}};
  return graph;
}

// Which kernels batches have in common depends on the width of vectors: it is counted for one that is at hand.
class Batches : public Shapes {
 protected:
  Batches() { ::setenv("HEDDLE_CPU_ISA", "avx2", 1); }
  ~Batches() override { ::unsetenv("HEDDLE_CPU_ISA"); }
};

// Counts the kernels that runs in new shapes find or lack.
class KernelsThere {
 public:
  KernelsThere() {
    set_log_sink([this](LogLevel, std::string_view text) {
      const size_t at = text.find("another shape, ");
      size_t there = 0, all = 0;
      if (at == std::string_view::npos) return;
      if (std::sscanf(std::string(text.substr(at)).c_str(), "another shape, %zu of %zu", &there, &all) != 2) return;
      lacking_ += all - there, all_ += all;
    });
  }
  ~KernelsThere() { set_log_sink({}); }
  size_t lacking() const { return lacking_; }
  size_t all() const { return all_; }

 private:
  size_t lacking_ = 0, all_ = 0;
};

// What load() compiles is told the batch: others hardly need the compiler, also where the first plan was in the cache.
TEST_F(Batches, AnotherBatchRunsTheKernelsOfLoad) {
  CompileOptions options;
  options.threads = 2;
  options.shapes["x"] = {6, 16, 18, 18};
  const GraphSpec graph = convolutions();
  const std::string path = model(graph);
  for (const bool cached : {false, true}) {
    SCOPED_TRACE(cached);
    const Model m = Model::load(path, options);
    EXPECT_EQ(m.impl().primary().from_cache.plan, cached);
    const KernelsThere counted;
    for (const int64_t batch : {5, 7, 8, 12, 16, 24}) {
      SCOPED_TRACE(batch);
      const std::map<std::string, Tensor> inputs{{"x", random_floats({batch, 16, 18, 18}, 7)}};
      expect_as_reference(graph, m.outputs(), m.run(inputs), inputs);
    }
    EXPECT_LE(10 * counted.lacking(), counted.all());
  }
}

// A program that loads the model with another batch mostly finds the library of the first in the cache.
TEST_F(Batches, LoadsOfSeveralBatchesShareLibraries) {
  CompileOptions options;
  options.threads = 2;
  const GraphSpec graph = convolutions();
  const std::string path = model(graph);
  for (const int64_t batch : {16, 20, 24, 28, 32, 36}) {
    SCOPED_TRACE(batch);
    options.shapes["x"] = {batch, 16, 18, 18};
    const Model m = Model::load(path, options);
    EXPECT_FALSE(m.impl().primary().from_cache.plan);
    const std::map<std::string, Tensor> inputs{{"x", random_floats({batch, 16, 18, 18}, 7)}};
    expect_as_reference(graph, m.outputs(), m.run(inputs), inputs);
  }
  EXPECT_LE(libraries(), 2u);
}

// Inputs that name their batch differently have it in front.
TEST_F(Batches, AnotherBatchOfAttentionRunsTheKernelsOfLoad) {
  const GraphSpec graph = attention();
  const Model m = Model::load(model(graph), at(6, 20));
  const KernelsThere counted;
  for (const int64_t batch : {5, 7, 8, 12, 16, 24}) {
    SCOPED_TRACE(batch);
    const auto inputs = attention_inputs(batch, 20);
    expect_as_reference(graph, m.outputs(), m.run(inputs), inputs);
  }
  EXPECT_LE(10 * counted.lacking(), counted.all());
}

GraphSpec product() {
  GraphSpec graph;
  graph.nodes = {{"MatMul", {"x", "w"}, {"y"}}, {"Add", {"more", "x"}, {"sum"}}};
  graph.inputs = {{"x", DType::kF32, {-1, -1}}, {"more", DType::kF32, {-1, -1}}};
  graph.outputs = {"y", "sum"};
  graph.initializers = {{"w", weight({kWidth, 8}, 1)}};
  return graph;
}

TEST_F(Shapes, ExtentsBesideARangeAreThoseThatTheOperatorsNeed) {
  CompileOptions options;
  options.threads = 2;
  options.ranges["x.0"] = {1, 6};
  const Model m = Model::load(model(product()), options);
  EXPECT_EQ(m.inputs()[0].shape, (Shape{6, kWidth}));
}

// An extent has one value, however its range is named.
TEST_F(Shapes, ARangeOfOneDimensionIsThatOfItsName) {
  CompileOptions options;
  options.ranges["past.2"] = {0, 12};
  const std::string path = model(growing_cache());
  const CompileOptions largest = driver::with_largest_extents(path, options);
  ASSERT_EQ(largest.ranges.size(), 1u);
  EXPECT_EQ(largest.ranges.begin()->first, "past_2");
  EXPECT_EQ(largest.shapes.at("past"), (Shape{1, 2, 12, 8}));
  options.ranges["past_2"] = {0, 13};
  EXPECT_EQ(error_of([&] { driver::with_largest_extents(path, options); }).code(), ErrorCode::kInvalidArgument);
}

TEST_F(Shapes, AModelWhoseFileIsAnotherByNowTakesNoNewShapes) {
  const Model m = Model::load(model(rows()), of_rows(20));
  model(growing_cache());
  m.run(rows_inputs(20));
  EXPECT_EQ(error_of([&] { m.run(rows_inputs(21)); }).code(), ErrorCode::kFile);
}

TEST_F(Shapes, RangesThatDoNotFitAreNamed) {
  const std::string path = model(growing_cache());
  CompileOptions options;
  options.ranges["length"] = {1, 8};
  const Error unknown = error_of([&] { Model::load(path, options); });
  EXPECT_EQ(unknown.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(unknown.what()).find("past_2"), std::string::npos) << unknown.what();
  options.ranges = {{"past.2", {8, 1}}};
  EXPECT_EQ(error_of([&] { Model::load(path, options); }).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace heddle
