// What operators compute on the way to a result in 16 bits fits them or not: it makes no difference.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "ir/reference/eval.h"
#include "model_bytes.h"

namespace heddle::onnx {
namespace {

struct OneNode {
  NodeSpec node;
  std::vector<Shape> shapes;  // of the inputs
  double size = 300;          // of their elements
  std::map<std::string, Tensor> initializers = {};
  int64_t opset = 23;
};

Tensor narrow(DType type, Shape shape, const std::vector<double>& values) {
  ir::Array array(type, std::move(shape));
  array.f() = values;
  return ir::to_tensor(array);
}

ir::Array random(DType type, const Shape& shape, double size, std::mt19937& engine) {
  ir::Array array(type, shape);
  std::uniform_real_distribution<double> part(0.5, 1);
  for (double& v : array.f()) v = round_to(type, size * part(engine) * (engine() % 4 == 0 ? -1 : 1));
  return array;
}

// The results where each value between is stored in its type, beside those without any rounding.
void expect_no_loss(const OneNode& one, DType type) {
  SCOPED_TRACE(one.node.op + " in " + std::string(to_string(type)));
  GraphSpec graph{{one.node}, {}, one.node.outputs, one.initializers};
  for (size_t i = 0; i < one.shapes.size(); ++i) graph.inputs.push_back({one.node.inputs[i], type, one.shapes[i]});
  const Imported imported = import_spec(graph, one.opset);
  constexpr unsigned kSeed = 71;
  std::mt19937 engine(kSeed);
  std::vector<ir::Array> inputs;
  for (const Shape& shape : one.shapes) inputs.push_back(random(type, shape, one.size, engine));
  const auto exact = ir::evaluate(imported.graph, inputs);
  const auto stored = ir::evaluate(imported.graph, inputs, {.round = true, .observe = {}});
  for (size_t i = 0; i < exact[0].f().size(); ++i) {
    const double want = exact[0].f()[i], step = std::fabs(want) * (type == DType::kF16 ? 0x1p-10 : 0x1p-7);
    ASSERT_LT(std::fabs(want), 65504) << "the case itself overflows";
    EXPECT_NEAR(stored[0].f()[i], want, 0.51 * step + 1e-7) << "element " << i << ", seed " << kSeed;
  }
}

void expect_no_loss(const OneNode& one) {
  expect_no_loss(one, DType::kF16);
  expect_no_loss(one, DType::kBF16);
}

TEST(Wide, Norms) {
  expect_no_loss({{"LRN", {"x"}, {"y"}, {{"size", int64_t{3}}}}, {{1, 5, 2, 2}}});
  expect_no_loss({{"LRN", {"x"}, {"y"}, {{"size", int64_t{5}}, {"alpha", 0.5F}}}, {{2, 12, 3}}});
  for (int64_t p : {1, 2}) expect_no_loss({{"LpNormalization", {"x"}, {"y"}, {{"p", p}}}, {{3, 700}}});
  expect_no_loss({{"MeanVarianceNormalization", {"x"}, {"y"}}, {{2, 3, 4, 5}}});
  expect_no_loss({{"InstanceNormalization", {"x", "s", "b"}, {"y"}}, {{2, 6, 5, 5}, {6}, {6}}});
  expect_no_loss({{"GroupNormalization", {"x", "s", "b"}, {"y"}, {{"num_groups", int64_t{2}}}}, {{2, 6, 5}, {6}, {6}}});
  expect_no_loss({{"LayerNormalization", {"x", "s", "b"}, {"y"}}, {{3, 40}, {40}, {40}}});
  expect_no_loss({{"RMSNormalization", {"x", "s"}, {"y"}}, {{3, 40}, {40}}});
}

TEST(Wide, Reductions) {
  const std::map<std::string, Tensor> axes{{"axes", longs({1}, {1})}};
  for (const char* op : {"ReduceL2", "ReduceLogSumExp", "ReduceMean"}) {
    expect_no_loss({{op, {"x", "axes"}, {"y"}}, {{3, 50}}, 600, axes});
  }
  expect_no_loss({{"ReduceSumSquare", {"x", "axes"}, {"y"}}, {{3, 50}}, 20, axes});
  for (int64_t p : {2, 3}) {
    expect_no_loss({{"GlobalLpPool", {"x"}, {"y"}, {{"p", p}}}, {{2, 3, 6, 6}}});
    const std::vector<int64_t> window{2, 3};
    expect_no_loss({{"LpPool", {"x"}, {"y"}, {{"p", p}, {"kernel_shape", window}}}, {{2, 3, 6, 6}}});
  }
  for (const char* op : {"Softmax", "LogSoftmax"}) expect_no_loss({{op, {"x"}, {"y"}}, {{2, 3000}}, 3});
}

TEST(Wide, CombinationsOfSeveralTensors) {
  expect_no_loss({{"Mean", {"a", "b", "c"}, {"y"}}, {{4, 5}, {4, 5}, {4, 5}}, 40000});
  expect_no_loss({{"Sum", {"a", "b", "c"}, {"y"}}, {{4, 5}, {4, 5}, {4, 5}}, 20000});
  const std::map<std::string, Tensor> labels{{"t", longs({3}, {0, 2, 1})},
                                             {"w", narrow(DType::kF16, {4}, {9, 7, 8, 5})}};
  const OneNode loss{{"NegativeLogLikelihoodLoss", {"x", "t", "w"}, {"y"}}, {{3, 4}}, 9000, labels};
  expect_no_loss(loss, DType::kF16);
  expect_no_loss({{"SoftmaxCrossEntropyLoss", {"x", "t"}, {"y"}}, {{3, 4}}, 9000, {{"t", longs({3}, {0, 2, 1})}}});
}

TEST(Wide, OperatorsOfOnnxRuntime) {
  const auto node = [](const char* op, std::vector<std::string> inputs) {
    return NodeSpec{op, std::move(inputs), {"y"}, {}, "com.microsoft"};
  };
  expect_no_loss({node("SkipLayerNormalization", {"x", "s", "g", "b"}), {{1, 3, 40}, {1, 3, 40}, {40}, {40}}});
  expect_no_loss({node("SkipSimplifiedLayerNormalization", {"x", "s", "g"}), {{1, 3, 40}, {1, 3, 40}, {40}}});
  for (const char* op : {"BiasGelu", "FastGelu"}) expect_no_loss({node(op, {"x", "b"}), {{3, 8}, {8}}, 2});
}

TEST(Wide, ScaledProducts) {
  const std::map<std::string, AttrSpec> attributes{{"alpha", 0.001F}, {"transB", int64_t{1}}};
  expect_no_loss({{"Gemm", {"a", "b", "c"}, {"y"}, attributes}, {{3, 8}, {4, 8}, {4}}});
}

// One tensor, element by element: kernels keep what is between, and texts find forms in its type.
TEST(Wide, ActivationsKeepTheirType) {
  for (const char* op : {"Sigmoid", "Softplus", "HardSigmoid", "Elu"}) {
    const GraphSpec graph{{{op, {"x"}, {"y"}}}, {{"x", DType::kF16, {8}}}, {"y"}};
    const Imported imported = import_spec(graph);
    for (const ir::Node& node : imported.graph.nodes()) EXPECT_NE(node.op, ir::Op::kCast) << op;
  }
}

}  // namespace
}  // namespace heddle::onnx
