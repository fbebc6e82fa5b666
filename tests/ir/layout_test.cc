#include "tests/ir/testing.h"

namespace heddle::ir::testing {
namespace {

TEST(Layout, BroadcastPlacesDimensions) {
  for (DType dtype : {DType::kF64, DType::kI64}) {
    const Array x = random_array(dtype, {3, 1, 7}, 1, -99, 99);
    const Array y = eval_op(Op::kBroadcast, {x}, {{"shape", Ints{3, 5, 2, 7}}, {"dims", Ints{0, 1, 3}}})[0];
    expect_elements(y, [&](const Coordinates& c) { return real_at(x, {c[0], 0, c[3]}); });
  }
  const Array s = eval_op(Op::kBroadcast, {reals({}, {3})}, {{"shape", Ints{2, 3}}, {"dims", Ints{}}})[0];
  EXPECT_EQ(s.f(), std::vector<double>(6, 3));
}

TEST(Layout, TransposeOfEveryPermutation) {
  const Array x = random_array(DType::kF64, {2, 3, 5, 7}, 2);
  Ints perm = {0, 1, 2, 3};
  do {
    const Array y = eval_op(Op::kTranspose, {x}, {{"perm", perm}})[0];
    expect_elements(y, [&](const Coordinates& c) {
      Coordinates from(4);
      for (size_t i = 0; i < 4; ++i) from[static_cast<size_t>(perm[i])] = c[i];
      return real_at(x, from);
    });
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Layout, Slice) {
  const Array x = random_array(DType::kI32, {5, 7, 11}, 3, -99, 99);
  const Attrs attrs{{"starts", Ints{1, 0, 2}}, {"limits", Ints{5, 7, 11}}, {"strides", Ints{2, 1, 4}}};
  const Array y = eval_op(Op::kSlice, {x}, attrs)[0];
  EXPECT_EQ(y.shape, (Shape{2, 7, 3}));
  expect_elements(y, [&](const Coordinates& c) { return real_at(x, {1 + 2 * c[0], c[1], 2 + 4 * c[2]}); });
  const Attrs single{{"starts", Ints{4, 6, 10}}, {"limits", Ints{5, 7, 11}}, {"strides", Ints{INT64_MAX, 1, 9}}};
  EXPECT_EQ(real_at(eval_op(Op::kSlice, {x}, single)[0], {0, 0, 0}), real_at(x, {4, 6, 10}));
}

TEST(Layout, Reverse) {
  const Array x = random_array(DType::kF64, {3, 4, 5}, 4);
  const Array y = eval_op(Op::kReverse, {x}, {{"dims", Ints{0, 2}}})[0];
  expect_elements(y, [&](const Coordinates& c) { return real_at(x, {2 - c[0], c[1], 4 - c[2]}); });
}

TEST(Layout, PadConstant) {
  const Array x = random_array(DType::kF64, {3, 4}, 5);
  const Attrs attrs{{"low", Ints{1, 0}}, {"high", Ints{2, 3}}, {"mode", "constant"}};
  const Array y = eval_op(Op::kPad, {x, reals({}, {-7})}, attrs)[0];
  EXPECT_EQ(y.shape, (Shape{6, 7}));
  expect_elements(y, [&](const Coordinates& c) {
    const bool inside = c[0] >= 1 && c[0] < 4 && c[1] < 4;
    return inside ? real_at(x, {c[0] - 1, c[1]}) : -7.0;
  });
}

std::vector<int64_t> pad_row(const std::string& mode, std::vector<int64_t> row, int64_t low, int64_t high) {
  const auto count = static_cast<int64_t>(row.size());
  const Array x = integers({count}, std::move(row));
  return eval_op(Op::kPad, {x, integers({}, {0})}, {{"low", Ints{low}}, {"high", Ints{high}}, {"mode", mode}})[0].i();
}

// Expectations from numpy.pad.
TEST(Layout, PadModesMayExceedTheExtent) {
  EXPECT_EQ(pad_row("edge", {1, 2, 3}, 2, 1), (Ints{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(pad_row("reflect", {1, 2, 3}, 2, 2), (Ints{3, 2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(pad_row("reflect", {1, 2, 3}, 5, 4), (Ints{2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3}));
  EXPECT_EQ(pad_row("reflect", {4}, 2, 2), (Ints{4, 4, 4, 4, 4}));
  EXPECT_EQ(pad_row("wrap", {1, 2, 3}, 4, 5), (Ints{3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2}));
}

TEST(Layout, PadReflectOfSeveralDimensions) {
  const Array x = random_array(DType::kF64, {3, 4, 2}, 6);
  const Attrs attrs{{"low", Ints{2, 1, 0}}, {"high", Ints{1, 0, 1}}, {"mode", "reflect"}};
  const auto fold = [](int64_t at, int64_t n) { return at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at; };
  expect_elements(eval_op(Op::kPad, {x, reals({}, {0})}, attrs)[0], [&](const Coordinates& c) {
    return real_at(x, {fold(c[0] - 2, 3), fold(c[1] - 1, 4), fold(c[2], 2)});
  });
}

TEST(Layout, Concat) {
  const Array a = random_array(DType::kF64, {2, 3, 5}, 7), b = random_array(DType::kF64, {2, 0, 5}, 8),
              c = random_array(DType::kF64, {2, 4, 5}, 9);
  const Array y = eval_op(Op::kConcat, {a, b, c}, {{"dim", int64_t{1}}})[0];
  expect_elements(y, [&](const Coordinates& at) {
    return at[1] < 3 ? real_at(a, at) : real_at(c, {at[0], at[1] - 3, at[2]});
  });
}

TEST(Layout, ReshapeAndEmpty) {
  const Array x = random_array(DType::kF64, {2, 3, 5}, 10);
  EXPECT_EQ(eval_op(Op::kReshape, {x}, {{"shape", Ints{5, 1, 6}}})[0].f(), x.f());
  EXPECT_EQ(eval_op(Op::kTranspose, {reals({0, 3}, {})}, {{"perm", Ints{1, 0}}})[0].shape, (Shape{3, 0}));
  EXPECT_EQ(eval_op(Op::kTranspose, {reals({}, {5})}, {{"perm", Ints{}}})[0].f(), (std::vector<double>{5}));
  EXPECT_EQ(eval_op(Op::kPad, {reals({0, 2}, {}), reals({}, {1})},
                    {{"low", Ints{1, 0}}, {"high", Ints{0, 1}}, {"mode", "constant"}})[0]
                .f(),
            (std::vector<double>{1, 1, 1}));
}

// Large enough for several threads and every way of collapsing dimensions.
TEST(Layout, LargeTransposeOnAllThreads) {
  const Array x = random_array(DType::kF64, {4, 61, 1, 59, 8}, 11);
  const Array y = eval_op(Op::kTranspose, {x}, {{"perm", Ints{0, 3, 2, 1, 4}}})[0];
  size_t wrong = 0;
  for_each_coordinate(y.shape, [&](const Coordinates& c) {
    wrong += real_at(y, c) != real_at(x, {c[0], c[3], c[2], c[1], c[4]});
  });
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace heddle::ir::testing
