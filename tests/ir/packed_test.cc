#include "tests/ir/testing.h"

namespace heddle::ir::testing {
namespace {

const Attrs kFourBits = {
    {"bits", int64_t{4}}, {"block", int64_t{8}}, {"k", int64_t{10}}, {"zero", int64_t{8}}, {"dtype", DType::kF32}};

// The first word has the integers 0, 1, 2, .. at the places of four bytes; the second one 15 and 14.
const Array kWords = integers({1, 2}, {0x73625140, 0x00000e0f}, DType::kU32);

Array reals(Shape shape, std::vector<double> values, DType dtype = DType::kF32) {
  Array array(dtype, std::move(shape));
  array.f() = std::move(values);
  return array;
}

TEST(Dequantize, FourIntegersAreInConsecutiveBytes) {
  const Array y = eval_op(Op::kDequantize, {kWords, reals({1, 2}, {1, 10})}, kFourBits)[0];
  EXPECT_EQ(y.shape, (Shape{1, 10}));
  EXPECT_EQ(y.f(), (std::vector<double>{-8, -7, -6, -5, -4, -3, -2, -1, 70, 60}));
}

TEST(Dequantize, BlocksMayHaveZeroPointsAndIntegersMayStandForATable) {
  const Array scales = reals({1, 2}, {1, 10});
  EXPECT_EQ(eval_op(Op::kDequantize, {kWords, scales, integers({1, 2}, {1, 15}, DType::kU8)}, kFourBits)[0].f(),
            (std::vector<double>{-1, 0, 1, 2, 3, 4, 5, 6, 0, -10}));
  std::vector<double> squares;
  for (int i = 0; i < 16; ++i) squares.push_back(i * i);
  EXPECT_EQ(eval_op(Op::kDequantize, {kWords, scales, reals({16}, squares)}, kFourBits)[0].f(),
            (std::vector<double>{0, 1, 4, 9, 16, 25, 36, 49, 2250, 1960}));
}

TEST(Dequantize, RefusesOperandsThatDoNotFit) {
  const TensorType words{DType::kU32, {1, 2}}, scales{DType::kF32, {1, 2}};
  EXPECT_NO_THROW(infer_op(Op::kDequantize, {words, scales}, kFourBits));
  EXPECT_THROW(infer_op(Op::kDequantize, {{DType::kU8, {1, 2}}, scales}, kFourBits), Error);
  EXPECT_THROW(infer_op(Op::kDequantize, {{DType::kU32, {1, 3}}, scales}, kFourBits), Error);
  EXPECT_THROW(infer_op(Op::kDequantize, {words, {DType::kF32, {1, 3}}}, kFourBits), Error);
  EXPECT_THROW(infer_op(Op::kDequantize, {words, scales, {DType::kF32, {15}}}, kFourBits), Error);
  Attrs three = kFourBits;
  three.set("bits", int64_t{3});
  EXPECT_THROW(infer_op(Op::kDequantize, {words, scales}, three), Error);
}

}  // namespace
}  // namespace heddle::ir::testing
