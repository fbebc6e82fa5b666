// Products with a matrix of a few rows and columns (passes/contraction/small_dots.h).
#include <fmt/format.h>

#include <algorithm>

#include "pass_test_util.h"
#include "passes/pass.h"

namespace heddle::passes {
namespace {

// What small_dots makes of a product for a GPU, which computes the same.
ir::Graph without_small(const std::string& text, unsigned seed = 1) {
  const ir::Graph before = ir::parse(text);
  ir::Graph after = run_passes(before, std::vector<std::string>{"small_dots"}, {Target::cuda_h200(1)});
  expect_same(before, after, 1e-3, seed);
  return after;
}

bool keeps_dot(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const ir::Node& node) { return node.op == ir::Op::kDot; });
}

std::string product(const std::string& a, const std::string& b, const std::string& attrs) {
  return fmt::format("graph(%a: {}, %b: {}) {{ %y = dot(%a, %b) {{{}}} return \"y\" = %y }}", a, b, attrs);
}

TEST(SmallDots, AreSumsOfProductsWhereverTheirDimensionsLie) {
  const std::string cases[] = {
      product("f16[100,4]", "f16[4,4]", "lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]"),
      product("f32[4,7]", "f32[5,4,131]", "lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [1]"),
      product("bf16[3,4,67,2]", "bf16[4,3,5,2]", "lhs_batch = [0], rhs_batch = [1], lhs_contract = [3, 1], rhs_contract = [3, 0]"),
      product("f16[2,16,3,64]", "f16[2,16]", "lhs_batch = [0], rhs_batch = [0], lhs_contract = [1], rhs_contract = [1]"),
      product("f16[90,1]", "f16[1,16]", "lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], out = f32"),
  };
  for (const std::string& text : cases) EXPECT_FALSE(keeps_dot(without_small(text))) << text;
}

TEST(SmallDots, OthersStayProducts) {
  const std::string plain = "lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]";
  const std::string cases[] = {
      product("f16[100,17]", "f16[17,4]", plain),
      product("f16[100,4]", "f16[4,17]", plain),
      product("f16[60,4]", "f16[4,4]", plain),
      product("i8[100,4]", "i8[4,4]", plain),
  };
  for (const std::string& text : cases) EXPECT_TRUE(keeps_dot(without_small(text))) << text;
}

}  // namespace
}  // namespace heddle::passes
