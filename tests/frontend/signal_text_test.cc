#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "model_bytes.h"

namespace heddle::onnx {
namespace {

TEST(Dft, MatchesTheDefinitionAndItsInverseUndoesIt) {
  std::mt19937 rng(3);
  const int64_t n = 7;
  std::vector<float> x(2 * n);
  for (float& v : x) v = std::uniform_real_distribution<float>(-1, 1)(rng);
  const GraphSpec graph{{{"DFT", {"x"}, {"spectrum"}}, {"DFT", {"spectrum"}, {"back"}, {{"inverse", int64_t{1}}}}},
                        {{"x", DType::kF32, {1, n, 2}}},
                        {"spectrum", "back"}};
  const auto results = run_spec(graph, {{"x", floats({1, n, 2}, x)}});
  for (int64_t k = 0; k < n; ++k) {
    double re = 0, im = 0;
    for (int64_t t = 0; t < n; ++t) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(k * t) / n;
      re += x[2 * t] * std::cos(angle) - x[2 * t + 1] * std::sin(angle);
      im += x[2 * t] * std::sin(angle) + x[2 * t + 1] * std::cos(angle);
    }
    EXPECT_NEAR(results.at("spectrum").f()[2 * k], re, 1e-5);
    EXPECT_NEAR(results.at("spectrum").f()[2 * k + 1], im, 1e-5);
  }
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(results.at("back").f()[i], x[i], 1e-6);
}

TEST(Dft, OneSidedSpectraComeBackAsRealSignals) {
  const GraphSpec graph{{{"DFT", {"x"}, {"half"}, {{"onesided", int64_t{1}}}},
                         {"DFT", {"half", "length"}, {"back"}, {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}}}},
                        {{"x", DType::kF32, {1, 5, 1}}},
                        {"half", "back"},
                        {{"length", longs({}, {5})}}};
  const std::vector<float> x = {1, -2, 3, 0.5, 4};
  const auto results = run_spec(graph, {{"x", floats({1, 5, 1}, x)}});
  EXPECT_EQ(results.at("half").shape, (Shape{1, 3, 2}));
  EXPECT_EQ(results.at("back").shape, (Shape{1, 5, 1}));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(results.at("back").f()[i], x[i], 1e-6);
}

TEST(Stft, TransformsWindowedFrames) {
  const GraphSpec graph{{{"STFT", {"x", "step", "window"}, {"y"}}},
                        {{"x", DType::kF32, {1, 8, 1}}},
                        {"y"},
                        {{"step", longs({}, {2})}, {"window", floats({4}, {1, 0, 0, 0})}}};
  const auto y = run_spec(graph, {{"x", floats({1, 8, 1}, {1, 2, 3, 4, 5, 6, 7, 8})}}).at("y");
  ASSERT_EQ(y.shape, (Shape{1, 3, 3, 2}));
  for (int64_t frame = 0; frame < 3; ++frame) {
    for (int64_t bin = 0; bin < 3; ++bin) EXPECT_NEAR(y.f()[(frame * 3 + bin) * 2], 1 + 2 * frame, 1e-6);
  }
}

TEST(Windows, PeriodicAndSymmetric) {
  GraphSpec graph{{{"HannWindow", {"n"}, {"y"}}}, {}, {"y"}, {{"n", longs({}, {4})}}};
  const auto periodic = run_spec(graph, {}).at("y");
  EXPECT_NEAR(periodic.f()[1], 0.5, 1e-6);
  EXPECT_NEAR(periodic.f()[2], 1, 1e-6);
  graph.nodes[0].attributes["periodic"] = int64_t{0};
  EXPECT_NEAR(run_spec(graph, {}).at("y").f()[3], 0, 1e-6);
}

OutputInfo text_output(const GraphSpec& graph) {
  return import_spec(graph).outputs.at(0);
}

TEST(Text, IsComputedAtImport) {
  const Tensor words = Tensor::of_strings({3}, {"a b", "", " Cd  e f "});
  GraphSpec graph{{{"StringSplit", {"words"}, {"y", "counts"}, {{"maxsplit", int64_t{1}}}}},
                  {},
                  {"y", "counts"},
                  {{"words", words}}};
  const OutputInfo parts = text_output(graph);
  EXPECT_EQ(parts.strings.shape(), (Shape{3, 2}));
  EXPECT_EQ(parts.strings.strings(), (std::vector<std::string>{"a", "b", "", "", "Cd", "e f "}));
  EXPECT_EQ(run_spec(graph, {}).at("counts").i(), (std::vector<int64_t>{2, 0, 2}));
  graph = {{{"StringConcat", {"words", "mark"}, {"y"}}},
           {},
           {"y"},
           {{"words", words}, {"mark", Tensor::of_strings({1}, {"!"})}}};
  EXPECT_EQ(text_output(graph).strings.strings(), (std::vector<std::string>{"a b!", "!", " Cd  e f !"}));
  graph = {
      {{"RegexFullMatch", {"words"}, {"y"}, {{"pattern", std::string("[a-z] [a-z]")}}}}, {}, {"y"}, {{"words", words}}};
  EXPECT_EQ(run_spec(graph, {}).at("y").i(), (std::vector<int64_t>{1, 0, 0}));
  graph.nodes[0].attributes["pattern"] = std::string("([");
  EXPECT_THROW(import_spec(graph), Error);
}

TEST(Text, LabelsBecomeNumbersAndNumbersOtherNumbers) {
  GraphSpec graph{{{"LabelEncoder",
                    {"words"},
                    {"y"},
                    {{"keys_strings", std::vector<std::string>{"x", "y"}},
                     {"values_int64s", std::vector<int64_t>{7, 8}},
                     {"default_int64", int64_t{-5}}},
                    "ai.onnx.ml"}},
                  {},
                  {"y"},
                  {{"words", Tensor::of_strings({3}, {"y", "z", "x"})}}};
  EXPECT_EQ(run_spec(graph, {}).at("y").i(), (std::vector<int64_t>{8, -5, 7}));
  graph = {{{"LabelEncoder",
             {"x"},
             {"y"},
             {{"keys_int64s", std::vector<int64_t>{1, 2, 1}}, {"values_floats", std::vector<float>{10, 20, 30}}},
             "ai.onnx.ml"}},
           {{"x", DType::kI64, {3}}},
           {"y"}};
  EXPECT_EQ(run_spec(graph, {{"x", longs({3}, {1, 2, 3})}}).at("y").f(), (std::vector<double>{30, 20, 0}));
}

TEST(TreeEnsemble, WalksEveryTree) {
  // x0 <= 1 ? leaf 10 : (x1 > 5 ? leaf 20 : leaf 30), and a tree of one leaf that adds 1.
  const std::vector<uint8_t> modes = {0, 3, 0};
  const GraphSpec graph{{{"TreeEnsemble",
                          {"x"},
                          {"y"},
                          {{"n_targets", int64_t{1}},
                           {"tree_roots", std::vector<int64_t>{0, 2}},
                           {"nodes_featureids", std::vector<int64_t>{0, 1, 0}},
                           {"nodes_modes", Tensor::of<uint8_t>(DType::kU8, {3}, std::span(modes))},
                           {"nodes_splits", floats({3}, {1, 5, 0})},
                           {"nodes_truenodeids", std::vector<int64_t>{0, 1, 3}},
                           {"nodes_trueleafs", std::vector<int64_t>{1, 1, 1}},
                           {"nodes_falsenodeids", std::vector<int64_t>{1, 2, 3}},
                           {"nodes_falseleafs", std::vector<int64_t>{0, 1, 1}},
                           {"leaf_targetids", std::vector<int64_t>{0, 0, 0, 0}},
                           {"leaf_weights", floats({4}, {10, 20, 30, 1})}},
                          "ai.onnx.ml"}},
                        {{"x", DType::kF32, {3, 2}}},
                        {"y"}};
  EXPECT_EQ(run_spec(graph, {{"x", floats({3, 2}, {0, 9, 2, 9, 2, 1})}}).at("y").f(),
            (std::vector<double>{11, 21, 31}));
  GraphSpec cyclic = graph;
  cyclic.nodes[0].attributes["nodes_falsenodeids"] = std::vector<int64_t>{0, 2, 3};
  EXPECT_THROW(import_spec(cyclic), Error);
}

}  // namespace
}  // namespace heddle::onnx
