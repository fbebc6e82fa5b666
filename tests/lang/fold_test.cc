// Products that are added to sums.
#include <gtest/gtest.h>

#include "lang/ir/parse.h"
#include "lang/passes/fold_accumulation.h"

namespace heddle::lang {
namespace {

// A loop that adds a product to what it carries; `more`: ops behind the product.
Kernel loop_of_products(const std::string& sums, const std::string& more) {
  return parse_and_verify(R"(tile_ir 2
kernel @k(%x: ptr<f32>, %n: i32) {num_warps = 4} {
  %a = constant {value = 1.0} : tile<16x16xf16>
  %zero = constant {value = 0.0} : tile<16x16xf32>
  %one = constant {value = 1.0} : tile<16x16xf32>
  %from = constant {value = 0} : i32
  %step = constant {value = 1} : i32
  %p = splat %x : tile<16x16xptr<f32>>
  %r = for %i = %from to %n step %step (%s = %zero) : tile<16x16xf32> {
    %d = dot %a, %a, )" + sums +
                          R"( : tile<16x16xf32>
    %t = add %s, %d : tile<16x16xf32>
)" + more + R"(
    yield %t
  }
  store %p, %r
}
)");
}

size_t count(const Kernel& kernel, OpCode code) {
  size_t found = 0;
  for_each_op(kernel.body, [&](const Op& op) { found += op.code == code ? 1 : 0; });
  return found;
}

TEST(FoldAccumulation, SumsGoIntoTheProduct) {
  Kernel kernel = loop_of_products("%zero", "");
  fold_accumulation(kernel);
  EXPECT_EQ(count(kernel, OpCode::kAdd), 0u);
  ASSERT_EQ(count(kernel, OpCode::kDot), 1u);
  for_each_op(kernel.body, [&](const Op& op) {
    if (op.code == OpCode::kDot) {
      EXPECT_EQ(kernel.value_name(op.operands[2]), "%s");
    }
  });
}

TEST(FoldAccumulation, NotWhereTheProductIsNeededOrBeginsElsewhere) {
  Kernel needed = loop_of_products("%zero", "    store %p, %d"), begun = loop_of_products("%one", "");
  for (Kernel* kernel : {&needed, &begun}) {
    fold_accumulation(*kernel);
    EXPECT_EQ(count(*kernel, OpCode::kAdd), 1u);
  }
}

}  // namespace
}  // namespace heddle::lang
