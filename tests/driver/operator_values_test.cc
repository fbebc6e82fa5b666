// Numbers that whole models give, against a computation operator by operator: on a CPU in driver_tests, on a GPU or the
// emulator in cuda_runtime_tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "models.h"
#include "tests/cuda_runtime/cuda_plans.h"

namespace heddle {
namespace {

class OperatorValues : public testing::Test {
 protected:
  void SetUp() override {
#ifdef HEDDLE_VALUES_ON_GPU
    if (!runtime::has_gpu()) GTEST_SKIP() << "there is no GPU";
    options_.target = "cuda";
#endif
  }
  Tensor run(const onnx::GraphSpec& graph, const std::map<std::string, Tensor>& inputs, int64_t opset = 23) {
    const std::string path = dir_.path() + "/m.onnx";
    write_file(path, onnx::model_bytes(graph, opset));
    return Model::load(path, options_).run(inputs)[0];
  }

  TempDir dir_;
  runtime::Variable cache_{"HEDDLE_CACHE_DIR", dir_.path() + "/cache"};
  runtime::Variable multiprocessors_{"HEDDLE_EMULATED_SMS", "4"};
  CompileOptions options_;
};

constexpr uint32_t kSeed = 5;

Tensor random_bytes(const Shape& shape, std::mt19937& engine) {
  Tensor tensor(DType::kI8, shape);
  for (int8_t& v : tensor.mutable_values<int8_t>()) v = static_cast<int8_t>(engine());
  return tensor;
}
Tensor number(float value) {
  return onnx::floats({}, {value});
}
int8_t quantised(float value, float scale) {
  return static_cast<int8_t>(std::clamp(std::nearbyint(value / scale), -128.F, 127.F));
}

// The last bit of a sum decides ties: a product that goes into a sum unrounded is another number.
TEST_F(OperatorValues, SumsOfDequantisedTensors) {
  std::mt19937 engine(kSeed);
  for (int round = 0; round < 4; ++round) {
    const auto scale = [&] { return std::ldexp(static_cast<float>(8 + engine() % 9), -7) * 1.28F; };
    const float sa = round == 0 ? 0.08F : scale(), sb = round == 0 ? 0.16F : scale(), sy = round == 0 ? 0.16F : scale();
    const onnx::GraphSpec graph{
        {{"DequantizeLinear", {"a", "sa"}, {"fa"}},
         {"DequantizeLinear", {"b", "sb"}, {"fb"}},
         {round % 2 == 0 ? "Add" : "Sub", {"fa", "fb"}, {"s"}},
         {"QuantizeLinear", {"s", "sy", "zy"}, {"y"}}},
        {{"a", DType::kI8, {9, 111}}, {"b", DType::kI8, {9, 111}}},
        {"y"},
        {{"sa", number(sa)}, {"sb", number(sb)}, {"sy", number(sy)}, {"zy", Tensor::of<int8_t>(DType::kI8, {}, {0})}}};
    const Tensor a = random_bytes({9, 111}, engine), b = random_bytes({9, 111}, engine);
    const Tensor y = run(graph, {{"a", a}, {"b", b}});
    for (size_t i = 0; i < y.values<int8_t>().size(); ++i) {
      const float fa = static_cast<float>(a.values<int8_t>()[i]) * sa,
                  fb = static_cast<float>(b.values<int8_t>()[i]) * sb;
      ASSERT_EQ(y.values<int8_t>()[i], quantised(round % 2 == 0 ? fa + fb : fa - fb, sy))
          << "element " << i << ", scales " << sa << " " << sb << " " << sy << ", seed " << kSeed;
    }
  }
}

// The same at the end of a product, whose sums are exact.
TEST_F(OperatorValues, RequantisedProducts) {
  std::mt19937 engine(kSeed);
  for (const int64_t columns : {24, 130}) {
    Tensor scale(DType::kF32, {columns}), bias(DType::kF32, {columns});
    for (float& v : scale.mutable_values<float>()) v = 0.001F + 0.01F * static_cast<float>(engine() % 64);
    for (float& v : bias.mutable_values<float>()) v = 0.08F * (static_cast<float>(engine() % 1000) - 500);
    const Tensor w = random_bytes({40, columns}, engine), x = random_bytes({33, 40}, engine);
    const onnx::GraphSpec graph{{{"MatMulInteger", {"x", "w"}, {"i"}},
                                 {"Cast", {"i"}, {"f"}, {{"to", int64_t{1}}}},
                                 {"Mul", {"f", "scale"}, {"m"}},
                                 {"Add", {"m", "bias"}, {"s"}},
                                 {"QuantizeLinear", {"s", "sy", "zy"}, {"y"}}},
                                {{"x", DType::kI8, {33, 40}}},
                                {"y"},
                                {{"w", w},
                                 {"scale", scale},
                                 {"bias", bias},
                                 {"sy", number(0.16F)},
                                 {"zy", Tensor::of<int8_t>(DType::kI8, {}, {0})}}};
    const Tensor y = run(graph, {{"x", x}});
    for (int64_t i = 0; i < 33 * columns; ++i) {
      int32_t sum = 0;
      for (int64_t k = 0; k < 40; ++k) {
        sum += x.values<int8_t>()[static_cast<size_t>(i / columns * 40 + k)] *
               w.values<int8_t>()[static_cast<size_t>(k * columns + i % columns)];
      }
      const auto column = static_cast<size_t>(i % columns);
      const float product = static_cast<float>(sum) * scale.values<float>()[column];
      ASSERT_EQ(y.values<int8_t>()[static_cast<size_t>(i)], quantised(product + bias.values<float>()[column], 0.16F))
          << "element " << i << " of " << columns << " columns, seed " << kSeed;
    }
  }
}

// What decides is not the operator that quantises alone.
TEST_F(OperatorValues, RoundingsOfSumsOfProducts) {
  std::mt19937 engine(kSeed);
  Tensor a(DType::kF32, {600}), b(DType::kF32, {600}), c(DType::kF32, {600});
  for (size_t i = 0; i < 600; ++i) {
    a.mutable_values<float>()[i] = 0.1F * static_cast<float>(engine() % 64);
    b.mutable_values<float>()[i] = 0.3F * static_cast<float>(engine() % 64);
    c.mutable_values<float>()[i] =
        std::nearbyint(a.values<float>()[i] * b.values<float>()[i]) - a.values<float>()[i] * b.values<float>()[i];
  }
  const auto check = [&](std::vector<onnx::NodeSpec> nodes, const auto& want) {
    nodes.insert(nodes.begin(), {{"Mul", {"a", "b"}, {"m"}}, {"Add", {"m", "c"}, {"s"}}});
    const onnx::GraphSpec graph{nodes,
                                {{"a", DType::kF32, {600}}, {"b", DType::kF32, {600}}, {"c", DType::kF32, {600}}},
                                {"y"},
                                {{"one", number(1)}}};
    const Tensor y = run(graph, {{"a", a}, {"b", b}, {"c", c}});
    for (size_t i = 0; i < 600; ++i) {
      const float product = a.values<float>()[i] * b.values<float>()[i];
      ASSERT_EQ(y.values<float>()[i], want(product + c.values<float>()[i], a.values<float>()[i]))
          << nodes[2].op << " at " << i << ", seed " << kSeed;
    }
  };
  check({{"Floor", {"s"}, {"y"}}}, [](float s, float) { return std::floor(s); });
  check({{"Cast", {"s"}, {"i"}, {{"to", int64_t{6}}}}, {"Cast", {"i"}, {"y"}, {{"to", int64_t{1}}}}},
        [](float s, float) { return std::trunc(s); });
  check({{"Div", {"s", "one"}, {"q"}},
         {"Equal", {"q", "s"}, {"e"}},
         {"Ceil", {"s"}, {"d"}},
         {"Where", {"e", "d", "a"}, {"y"}}},
        [](float s, float) { return std::ceil(s); });
}

Tensor halves(DType type, Shape shape, const std::vector<double>& values) {
  ir::Array array(type, std::move(shape));
  array.f() = values;
  return ir::to_tensor(array);
}

// Sums of squares of numbers that f16 holds are beyond f16, their roots are not.
TEST_F(OperatorValues, SquaresAreBeyondTheirType) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const double step = type == DType::kF16 ? 0x1p-10 : 0x1p-7;
    const auto value = [&](const onnx::NodeSpec& node, const Shape& shape, double x,
                           const std::map<std::string, Tensor>& initializers = {}) {
      const onnx::GraphSpec graph{{node}, {{"x", type, shape}}, {"y"}, initializers};
      const std::vector<double> all(static_cast<size_t>(element_count(shape)), x);
      return ir::to_array(run(graph, {{"x", halves(type, shape, all)}}, 18)).f()[0];
    };
    const auto expect = [&](double got, double want) { EXPECT_NEAR(got, want, want * step) << to_string(type); };
    for (const int64_t channels : {5, 32}) {
      const double base = 1 + 1e-4 / 3 * 2 * 300 * 300;
      expect(value({"LRN", {"x"}, {"y"}, {{"size", int64_t{3}}}}, {1, channels, 4, 4}, 300),
             300 / std::pow(base, 0.75));
    }
    expect(value({"LpNormalization", {"x"}, {"y"}}, {3, 400}, 300), 0.05);
    const std::vector<int64_t> window{3, 3};
    expect(value({"LpPool", {"x"}, {"y"}, {{"kernel_shape", window}}}, {1, 2, 6, 6}, 300), 900);
    expect(value({"ReduceL2", {"x", "axes"}, {"y"}}, {2, 25}, 300, {{"axes", onnx::longs({1}, {1})}}), 1500);
  }
}

}  // namespace
}  // namespace heddle
