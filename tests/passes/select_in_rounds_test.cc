#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pass_test_util.h"

namespace heddle::passes {
namespace {

ir::Graph in_rounds(const ir::Graph& graph, const Target& target = Target::cuda_h200()) {
  const std::vector<std::string> names = {"select_in_rounds", "canonicalize", "fold", "cse"};
  return run_passes(graph, names, {target});
}

bool selects(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const ir::Node& node) { return node.op == ir::Op::kTopK; });
}

std::string topk(const char* type, const char* shape, int dim, int k, int largest) {
  return fmt::format(
      "graph(%x: {}[{}]) {{ %v, %i = topk(%x) {{dim = {}, k = {}, largest = {}, sorted = 1}}\n return \"v\" = %v, "
      "\"i\" = %i }}",
      type, shape, dim, k, largest);
}

// Integers of the tests are in [0, 4): most have equals.
TEST(SelectInRounds, FindsTheSameInTheSameOrder) {
  for (const char* type : {"f32", "f16", "bf16", "i8", "u16"}) {
    for (const int largest : {0, 1}) {
      for (const int k : {1, 2, 5}) {
        const std::string last = topk(type, "3,4,7", 2, k, largest), middle = topk(type, "3,5,4", 1, k, largest);
        for (const std::string& text : {last, middle}) {
          SCOPED_TRACE(text);
          const ir::Graph before = ir::parse(text), after = in_rounds(before);
          EXPECT_FALSE(selects(after));
          for (uint32_t seed = 1; seed <= 3; ++seed) expect_same(before, after, 0, seed);
        }
      }
    }
  }
}

TEST(SelectInRounds, OrdersWhatIsNoNumberOrInfiniteOrZero) {
  const double inf = HUGE_VAL, nan = std::nan("");
  ir::Array x(DType::kF32, {2, 8});
  x.f() = {-inf, nan, 1, -0.0, 0, inf, nan, -inf, -inf, -inf, -inf, -inf, -1, -inf, -inf, -inf};
  for (const int largest : {0, 1}) {
    const ir::Graph before = ir::parse(topk("f32", "2,8", 1, 8, largest)), after = in_rounds(before);
    ASSERT_FALSE(selects(after));
    EXPECT_EQ(ir::evaluate(after, {x})[1].i(), ir::evaluate(before, {x})[1].i()) << largest;
  }
}

TEST(SelectInRounds, ManyElementsWideTypesAndACpuKeepTheirs) {
  EXPECT_TRUE(selects(in_rounds(ir::parse(topk("f32", "3,40", 1, 17, 1)))));
  EXPECT_TRUE(selects(in_rounds(ir::parse(topk("f64", "3,40", 1, 2, 1)))));
  EXPECT_TRUE(selects(in_rounds(ir::parse(topk("i64", "3,40", 1, 2, 1)))));
  EXPECT_TRUE(selects(in_rounds(ir::parse(topk("f32", "3,40", 1, 2, 1)), test_target())));
}

}  // namespace
}  // namespace heddle::passes
