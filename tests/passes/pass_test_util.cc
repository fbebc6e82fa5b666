#include "pass_test_util.h"

#include <cmath>
#include <random>

namespace heddle::passes {

std::vector<ir::Array> random_inputs(const ir::Graph& graph, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<ir::Array> inputs;
  for (const auto& port : graph.inputs()) {
    const ir::TensorType& type = graph.type(port.value);
    ir::Array array(type.dtype, type.shape);
    if (array.real()) {
      for (double& x : array.f()) x = round_to(type.dtype, std::uniform_real_distribution<double>(-2, 2)(random));
    } else {
      for (int64_t& x : array.i()) x = static_cast<int64_t>(random() % (type.dtype == DType::kBool ? 2 : 4));
    }
    inputs.push_back(std::move(array));
  }
  return inputs;
}

void expect_same(const ir::Graph& before, const ir::Graph& after, double tolerance, uint32_t seed) {
  const auto inputs = random_inputs(before, seed);
  const auto expected = ir::evaluate(before, inputs), actual = ir::evaluate(after, inputs);
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(before.outputs()[i].name, after.outputs()[i].name);
    ASSERT_EQ(expected[i].shape, actual[i].shape);
    ASSERT_EQ(expected[i].dtype, actual[i].dtype);
    if (!expected[i].real()) {
      EXPECT_EQ(expected[i].i(), actual[i].i());
      continue;
    }
    double scale = 1e-3;
    for (double x : expected[i].f()) {
      if (std::isfinite(x)) scale = std::max(scale, std::fabs(x));
    }
    for (size_t j = 0; j < expected[i].f().size(); ++j) {
      const double x = expected[i].f()[j], y = actual[i].f()[j];
      if (std::isnan(x) && std::isnan(y)) continue;
      if (x == y) continue;
      ASSERT_NEAR(x, y, tolerance * scale) << "output " << i << " element " << j << "\n" << ir::print(after);
    }
  }
}

}  // namespace heddle::passes
