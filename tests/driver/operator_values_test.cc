// Numbers that whole models give, against a computation operator by operator: on a CPU in driver_tests, on a GPU or the
// emulator in cuda_runtime_tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
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
  std::vector<Tensor> run(const onnx::GraphSpec& graph, const std::map<std::string, Tensor>& inputs) {
    const std::string path = dir_.path() + "/m.onnx";
    write_file(path, onnx::model_bytes(graph, 18));
    return Model::load(path, options_).run(inputs);
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
  const auto scale = [&] { return std::ldexp(static_cast<float>(8 + engine() % 9), -7) * 1.28F; };
  const Shape shape{9, 111};
  onnx::GraphSpec graph;
  graph.initializers["zero"] = Tensor::of<int8_t>(DType::kI8, {}, {0});
  std::map<std::string, Tensor> inputs;
  std::vector<std::array<float, 3>> scales{{0.08F, 0.16F, 0.16F}};
  for (int i = 1; i < 6; ++i) scales.push_back({scale(), scale(), scale()});
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto name = [&](const char* base) { return base + std::to_string(i); };
    for (size_t k = 0; k < 3; ++k) graph.initializers[name("s") + std::to_string(k)] = number(scales[i][k]);
    for (const char* x : {"a", "b"}) {
      inputs[name(x)] = random_bytes(shape, engine);
      graph.inputs.push_back({name(x), DType::kI8, shape});
    }
    graph.nodes.push_back({"DequantizeLinear", {name("a"), name("s") + "0"}, {name("fa")}});
    graph.nodes.push_back({"DequantizeLinear", {name("b"), name("s") + "1"}, {name("fb")}});
    graph.nodes.push_back({i % 2 == 0 ? "Add" : "Sub", {name("fa"), name("fb")}, {name("f")}});
    graph.nodes.push_back({"QuantizeLinear", {name("f"), name("s") + "2", "zero"}, {name("y")}});
    graph.outputs.push_back(name("y"));
  }
  const std::vector<Tensor> y = run(graph, inputs);
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto a = inputs.at("a" + std::to_string(i)).values<int8_t>(),
               b = inputs.at("b" + std::to_string(i)).values<int8_t>();
    for (size_t k = 0; k < a.size(); ++k) {
      const float fa = static_cast<float>(a[k]) * scales[i][0], fb = static_cast<float>(b[k]) * scales[i][1];
      ASSERT_EQ(int{y[i].values<int8_t>()[k]}, int{quantised(i % 2 == 0 ? fa + fb : fa - fb, scales[i][2])})
          << "element " << k << ", scales " << scales[i][0] << " " << scales[i][1] << " " << scales[i][2] << ", seed "
          << kSeed;
    }
  }
}

// The same at the end of a product, whose sums are exact.
TEST_F(OperatorValues, RequantisedProducts) {
  std::mt19937 engine(kSeed);
  const auto small = [&](const Shape& shape) {
    Tensor tensor = random_bytes(shape, engine);
    for (int8_t& v : tensor.mutable_values<int8_t>()) v = static_cast<int8_t>(v % 3);
    return tensor;
  };
  for (const int64_t columns : {24, 130}) {
    Tensor scale(DType::kF32, {columns}), bias(DType::kF32, {columns});
    for (float& v : scale.mutable_values<float>()) v = 0.08F * static_cast<float>(1 + engine() % 5);
    for (float& v : bias.mutable_values<float>()) v = 0.08F * (static_cast<float>(engine() % 100) - 50);
    const Tensor w = small({40, columns}), x = small({33, 40});
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
    const Tensor y = run(graph, {{"x", x}})[0];
    for (int64_t i = 0; i < 33 * columns; ++i) {
      int32_t sum = 0;
      for (int64_t k = 0; k < 40; ++k) {
        sum += x.values<int8_t>()[static_cast<size_t>(i / columns * 40 + k)] *
               w.values<int8_t>()[static_cast<size_t>(k * columns + i % columns)];
      }
      const auto column = static_cast<size_t>(i % columns);
      const float product = static_cast<float>(sum) * scale.values<float>()[column];
      const float wanted = product + bias.values<float>()[column];
      // The division by the output's scale is folded into the other scales, so a tie may fall to either side.
      const double steps = double{wanted} / 0.16, above = steps - std::floor(steps);
      const int most = std::abs(above - 0.5) < 1e-3 ? 1 : 0;
      ASSERT_LE(std::abs(int{y.values<int8_t>()[static_cast<size_t>(i)]} - int{quantised(wanted, 0.16F)}), most)
          << "element " << i << " of " << columns << " columns, seed " << kSeed;
    }
  }
}

// Not only the operator that quantises decides.
TEST_F(OperatorValues, RoundingsOfSumsOfProducts) {
  std::mt19937 engine(kSeed);
  Tensor a(DType::kF32, {600}), b(DType::kF32, {600}), c(DType::kF32, {600});
  for (size_t i = 0; i < 600; ++i) {
    a.mutable_values<float>()[i] = 0.1F * static_cast<float>(engine() % 64);
    b.mutable_values<float>()[i] = 0.3F * static_cast<float>(engine() % 64);
    const float product = a.values<float>()[i] * b.values<float>()[i];
    c.mutable_values<float>()[i] = std::nearbyint(product) - product;
  }
  const onnx::AttrSpec to_int = int64_t{6}, to_float = int64_t{1};
  const onnx::GraphSpec graph{{{"Mul", {"a", "b"}, {"m"}},
                               {"Add", {"m", "c"}, {"s"}},
                               {"Floor", {"s"}, {"floor"}},
                               {"Cast", {"s"}, {"i"}, {{"to", to_int}}},
                               {"Cast", {"i"}, {"whole"}, {{"to", to_float}}},
                               {"Equal", {"floor", "s"}, {"e"}},
                               {"Where", {"e", "a", "b"}, {"chosen"}},
                               {"Div", {"s", "three"}, {"q"}},
                               {"Round", {"q"}, {"third"}}},
                              {{"a", DType::kF32, {600}}, {"b", DType::kF32, {600}}, {"c", DType::kF32, {600}}},
                              {"floor", "whole", "chosen", "third"},
                              {{"three", number(3)}}};
  const std::vector<Tensor> y = run(graph, {{"a", a}, {"b", b}, {"c", c}});
  for (size_t i = 0; i < 600; ++i) {
    const float x = a.values<float>()[i], z = b.values<float>()[i], product = x * z,
                sum = product + c.values<float>()[i];
    ASSERT_EQ(y[0].values<float>()[i], std::floor(sum)) << "element " << i << ", seed " << kSeed;
    ASSERT_EQ(y[1].values<float>()[i], std::trunc(sum)) << "element " << i << ", seed " << kSeed;
    ASSERT_EQ(y[2].values<float>()[i], std::floor(sum) == sum ? x : z) << "element " << i << ", seed " << kSeed;
    ASSERT_EQ(y[3].values<float>()[i], std::nearbyint(sum / 3)) << "element " << i << ", seed " << kSeed;
  }
}

Tensor halves(DType type, Shape shape, const std::vector<double>& values) {
  ir::Array array(type, std::move(shape));
  array.f() = values;
  return ir::to_tensor(array);
}

// Sums of squares of numbers that f16 holds are beyond f16, their roots are not.
TEST_F(OperatorValues, SquaresAreBeyondTheirType) {
  const std::vector<int64_t> window{3, 3};
  const onnx::AttrSpec size = int64_t{3};
  const double base = 1 + 1e-4 / 3 * 2 * 300 * 300;
  const onnx::GraphSpec nodes{{{"LRN", {"a"}, {"r0"}, {{"size", size}}},
                               {"LRN", {"b"}, {"r1"}, {{"size", size}}},
                               {"LpNormalization", {"c"}, {"r2"}},
                               {"LpPool", {"d"}, {"r3"}, {{"kernel_shape", window}}},
                               {"ReduceL2", {"e", "axes"}, {"r4"}}},
                              {},
                              {"r0", "r1", "r2", "r3", "r4"},
                              {{"axes", onnx::longs({1}, {1})}}};
  const Shape shapes[] = {{1, 5, 4, 4}, {1, 32, 4, 4}, {3, 400}, {1, 2, 6, 6}, {2, 25}};
  const double want[] = {300 / std::pow(base, 0.75), 300 / std::pow(base, 0.75), 0.05, 900, 1500};
  for (const DType type : {DType::kF16, DType::kBF16}) {
    onnx::GraphSpec graph = nodes;
    std::map<std::string, Tensor> inputs;
    for (size_t i = 0; i < 5; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      graph.inputs.push_back({name, type, shapes[i]});
      inputs[name] = halves(type, shapes[i], std::vector<double>(static_cast<size_t>(element_count(shapes[i])), 300));
    }
    const std::vector<Tensor> y = run(graph, inputs);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(ir::to_array(y[i]).f()[0], want[i], want[i] * (type == DType::kF16 ? 0x1p-10 : 0x1p-7))
          << graph.nodes[i].op;
    }
  }
}

}  // namespace
}  // namespace heddle
