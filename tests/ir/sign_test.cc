#include "ir/analysis/sign.h"

#include "ir/builder.h"
#include "tests/ir/testing.h"

namespace heddle::ir::testing {
namespace {

class SignTest : public ::testing::Test {
 protected:
  ValueId pool(ValueId v, std::string_view kind, Ints low, Ints high = {0}) {
    Attrs attrs;
    attrs.set("kind", std::string(kind));
    attrs.set("window", Ints{3}), attrs.set("strides", Ints{1}), attrs.set("dilations", Ints{1});
    attrs.set("low", low), attrs.set("high", high);
    return b.emit(Op::kWindowReduce, {v}, std::move(attrs));
  }
  Sign sign(ValueId v) const { return sign_of(graph, v); }

  Graph graph;
  Builder b{graph};
  const ValueId x = graph.parameter("x", {DType::kF32, {8}});
  const ValueId relu = b.binary(Op::kMax, x, 0.0);
};

TEST_F(SignTest, AMaximumWithZeroMayBeMinusZero) {
  EXPECT_EQ(sign(x), Sign::kAny);
  EXPECT_EQ(sign(relu), Sign::kNotNegative);
  EXPECT_EQ(sign(b.max(b.unary(Op::kExp, x), b.scalar(DType::kF32, 0))), Sign::kNoSignBit);
  EXPECT_EQ(sign(b.binary(Op::kMin, relu, 6.0)), Sign::kNotNegative);
  EXPECT_EQ(sign(b.binary(Op::kMin, relu, -6.0)), Sign::kAny);
  EXPECT_EQ(sign(b.binary(Op::kMin, relu, -0.0)), Sign::kAny);
}

TEST_F(SignTest, AQuotientByMinusZeroIsNegative) {
  EXPECT_EQ(sign(b.div(relu, relu)), Sign::kAny);
  EXPECT_EQ(sign(b.div(relu, b.unary(Op::kExp, x))), Sign::kNotNegative);
}

TEST_F(SignTest, ReductionsKeepItIfTheyHaveElements) {
  EXPECT_EQ(sign(b.reduce("max", relu, {0})), Sign::kNotNegative);
  EXPECT_EQ(sign(b.reduce("sum", b.mul(x, x), {0})), Sign::kNoSignBit);
  EXPECT_EQ(sign(b.reduce("prod", relu, {0})), Sign::kAny);
  const ValueId none = graph.parameter("none", {DType::kF32, {0}});
  EXPECT_EQ(sign(b.reduce("max", b.binary(Op::kMax, none, 0.0), {0})), Sign::kAny);
  const ValueId padding = graph.parameter("padding", {DType::kF32, {0}});
  EXPECT_EQ(sign(pool(b.binary(Op::kMax, padding, 0.0), "max", {2}, {1})), Sign::kAny);
  EXPECT_EQ(sign(pool(relu, "max", {2})), Sign::kNotNegative);
  EXPECT_EQ(sign(pool(relu, "max", {3})), Sign::kAny);  // the first window has only padding
}

TEST_F(SignTest, LongChainsEnd) {
  ValueId v = relu;
  for (int i = 0; i < 100000; ++i) v = b.add(v, v);
  EXPECT_EQ(sign(v), Sign::kAny);
}

}  // namespace
}  // namespace heddle::ir::testing
