#include "pass_test_util.h"

#include <cmath>
#include <random>
#include <set>

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

void check_contract(const ir::Graph& graph, const ir::Grouping& grouping) {
  std::set<ir::ValueId> made;
  size_t nodes = 0;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == ir::Op::kConstant || node.op == ir::Op::kParameter) {
      made.insert(node.outputs[0]);
    } else {
      ++nodes;
    }
  }
  for (const ir::Group& group : grouping.groups) {
    for (ir::ValueId v : group.inputs) EXPECT_TRUE(made.contains(v)) << "a group runs before its operand is made";
    std::set<ir::ValueId> inside;
    for (ir::NodeId id : group.nodes) {
      --nodes;
      for (ir::ValueId v : graph.node(id).inputs) {
        const bool outside = std::find(group.inputs.begin(), group.inputs.end(), v) != group.inputs.end();
        EXPECT_NE(outside, inside.contains(v));
      }
      inside.insert(graph.node(id).outputs.begin(), graph.node(id).outputs.end());
    }
    for (ir::ValueId v : group.outputs) {
      EXPECT_TRUE(inside.contains(v));
      made.insert(v);
    }
  }
  EXPECT_EQ(nodes, 0u);
  for (const auto& port : graph.outputs()) EXPECT_TRUE(made.contains(port.value));
}

}  // namespace heddle::passes
