#include <cmath>
#include <limits>

#include "tests/ir/testing.h"

namespace heddle::ir::testing {
namespace {

Array reduce(const Array& x, const char* kind, Ints dims) {
  return eval_op(Op::kReduce, {x}, {{"kind", kind}, {"dims", std::move(dims)}})[0];
}

// Every subset of the dimensions, sum and max, against one pass over all coordinates.
TEST(Reduce, EverySubsetOfDimensions) {
  const Array x = random_array(DType::kI64, {3, 5, 2, 7}, 1, -99, 99);
  for (int mask = 0; mask < 16; ++mask) {
    Ints dims;
    Shape kept;
    for (int d = 0; d < 4; ++d)
      (mask >> d & 1 ? dims : kept).push_back(mask >> d & 1 ? d : x.shape[static_cast<size_t>(d)]);
    Array sum(DType::kI64, kept), max(DType::kI64, kept);
    for (int64_t& v : max.i()) v = INT64_MIN;
    for_each_coordinate(x.shape, [&](const Coordinates& c) {
      Coordinates to;
      for (int d = 0; d < 4; ++d) {
        if (!(mask >> d & 1)) to.push_back(c[static_cast<size_t>(d)]);
      }
      const size_t at = linear_index(kept, to);
      const int64_t v = x.i()[linear_index(x.shape, c)];
      sum.i()[at] += v;
      max.i()[at] = std::max(max.i()[at], v);
    });
    EXPECT_EQ(reduce(x, "sum", dims).i(), sum.i()) << mask;
    EXPECT_EQ(reduce(x, "max", dims).i(), max.i()) << mask;
  }
}

TEST(Reduce, LargeOnAllThreads) {
  const Array x = random_array(DType::kF64, {37, 4099}, 2);
  const Array rows = reduce(x, "sum", {1}), columns = reduce(x, "sum", {0});
  double total = 0;
  for (double v : x.f()) total += v;
  double by_rows = 0, by_columns = 0;
  for (double v : rows.f()) by_rows += v;
  for (double v : columns.f()) by_columns += v;
  EXPECT_NEAR(by_rows, total, 1e-9);
  EXPECT_NEAR(by_columns, total, 1e-9);
  EXPECT_NEAR(reduce(x, "sum", {0, 1}).f()[0], total, 1e-9);
}

TEST(Reduce, EmptyGivesTheIdentity) {
  const Array f = reals({0, 2}, {}, DType::kF32);
  EXPECT_EQ(reduce(f, "sum", {0}).f(), (std::vector<double>{0, 0}));
  EXPECT_EQ(reduce(f, "prod", {0}).f(), (std::vector<double>{1, 1}));
  EXPECT_EQ(reduce(f, "max", {0}).f(), (std::vector<double>{-kInf, -kInf}));
  EXPECT_EQ(reduce(f, "min", {0}).f(), (std::vector<double>{kInf, kInf}));
  EXPECT_EQ(reduce(integers({0}, {}, DType::kI8), "max", {0}).i(), (Ints{-128}));
  EXPECT_EQ(reduce(integers({0}, {}, DType::kU64), "min", {0}).i(), (Ints{-1}));
  EXPECT_EQ(reduce(reals({0}, {}, DType::kF8E4M3), "max", {0}).f(), (std::vector<double>{-448}));
  EXPECT_EQ(reduce(integers({0}, {}, DType::kBool), "any", {0}).i(), (Ints{0}));
  EXPECT_EQ(reduce(integers({0}, {}, DType::kBool), "all", {0}).i(), (Ints{1}));
  EXPECT_EQ(reduce(f, "sum", {1}).shape, (Shape{0}));
}

TEST(Reduce, NanWrapAndBool) {
  EXPECT_TRUE(std::isnan(reduce(reals({3}, {1, kNan, 2}), "max", {0}).f()[0]));
  EXPECT_TRUE(std::isnan(reduce(reals({3}, {1, kNan, -2}), "min", {0}).f()[0]));
  EXPECT_EQ(reduce(integers({3}, {100, 100, 100}, DType::kI8), "sum", {0}).i(), (Ints{44}));
  EXPECT_EQ(reduce(integers({2}, {-1, 1}, DType::kU64), "max", {0}).i(), (Ints{-1}));
  const Array b = integers({2, 2}, {0, 1, 0, 0}, DType::kBool);
  EXPECT_EQ(reduce(b, "any", {1}).i(), (Ints{1, 0}));
  EXPECT_EQ(reduce(b, "all", {0}).i(), (Ints{0, 0}));
}

TEST(Reduce, RoundsTheStoredResultOnly) {
  const Array x = reals({3}, {2048, 1, 1}, DType::kF16);
  EXPECT_EQ(eval_op(Op::kReduce, {x}, {{"kind", "sum"}, {"dims", Ints{0}}}, true)[0].f()[0], 2050);
}

Ints arg(const Array& x, const char* kind, int64_t dim, bool last) {
  return eval_op(Op::kArgReduce, {x}, {{"kind", kind}, {"dim", dim}, {"last", int64_t{last}}})[0].i();
}

TEST(ArgReduce, TiesAndNan) {
  const Array x = reals({5}, {1, 3, 3, 0, 0});
  EXPECT_EQ(arg(x, "max", 0, false), (Ints{1}));
  EXPECT_EQ(arg(x, "max", 0, true), (Ints{2}));
  EXPECT_EQ(arg(x, "min", 0, false), (Ints{3}));
  EXPECT_EQ(arg(x, "min", 0, true), (Ints{4}));
  const Array nan = reals({4}, {5, kNan, kNan, -9});
  for (const char* kind : {"max", "min"}) {
    EXPECT_EQ(arg(nan, kind, 0, false), (Ints{1}));
    EXPECT_EQ(arg(nan, kind, 0, true), (Ints{2}));
  }
  EXPECT_EQ(arg(integers({2}, {-1, 1}, DType::kU64), "max", 0, false), (Ints{0}));
  EXPECT_EQ(arg(integers({2}, {-1, 1}), "max", 0, false), (Ints{1}));
}

TEST(ArgReduce, MiddleDimension) {
  const Array x = random_array(DType::kF64, {3, 5, 2}, 3);
  const Array y = eval_op(Op::kArgReduce, {x}, {{"kind", "min"}, {"dim", int64_t{1}}, {"last", int64_t{0}}})[0];
  expect_elements(y, [&](const Coordinates& c) {
    int64_t best = 0;
    for (int64_t k = 1; k < 5; ++k) {
      if (real_at(x, {c[0], k, c[1]}) < real_at(x, {c[0], best, c[1]})) best = k;
    }
    return static_cast<double>(best);
  });
}

Ints scan(const char* kind, bool exclusive, bool reverse) {
  return eval_op(
             Op::kScan, {integers({4}, {1, 2, 3, 4}, DType::kI8)},
             {{"kind", kind}, {"dim", int64_t{0}}, {"exclusive", int64_t{exclusive}}, {"reverse", int64_t{reverse}}})[0]
      .i();
}

TEST(Scan, KindsAndDirections) {
  EXPECT_EQ(scan("sum", false, false), (Ints{1, 3, 6, 10}));
  EXPECT_EQ(scan("sum", true, false), (Ints{0, 1, 3, 6}));
  EXPECT_EQ(scan("sum", false, true), (Ints{10, 9, 7, 4}));
  EXPECT_EQ(scan("sum", true, true), (Ints{9, 7, 4, 0}));
  EXPECT_EQ(scan("prod", false, false), (Ints{1, 2, 6, 24}));
  EXPECT_EQ(scan("max", true, false), (Ints{-128, 1, 2, 3}));
  EXPECT_EQ(scan("min", false, true), (Ints{1, 2, 3, 4}));
}

TEST(Scan, MiddleDimension) {
  const Array x = random_array(DType::kF64, {3, 5, 2}, 4);
  const Array y = eval_op(
      Op::kScan, {x}, {{"kind", "sum"}, {"dim", int64_t{1}}, {"exclusive", int64_t{0}}, {"reverse", int64_t{0}}})[0];
  expect_elements(y, [&](const Coordinates& c) {
    double sum = 0;
    for (int64_t k = 0; k <= c[1]; ++k) sum += real_at(x, {c[0], k, c[2]});
    return sum;
  });
}

std::vector<Array> topk(const Array& x, int64_t k, int64_t dim, bool largest) {
  return eval_op(Op::kTopK, {x}, {{"k", k}, {"dim", dim}, {"largest", int64_t{largest}}, {"sorted", int64_t{1}}});
}

TEST(TopK, TiesKeepTheLowerIndex) {
  const Array x = integers({6}, {3, 1, 3, 2, 1, 3});
  auto r = topk(x, 4, 0, true);
  EXPECT_EQ(r[0].i(), (Ints{3, 3, 3, 2}));
  EXPECT_EQ(r[1].i(), (Ints{0, 2, 5, 3}));
  r = topk(x, 6, 0, false);
  EXPECT_EQ(r[1].i(), (Ints{1, 4, 3, 0, 2, 5}));
  EXPECT_EQ(topk(x, 0, 0, true)[0].shape, (Shape{0}));
}

TEST(TopK, NanIsAboveEveryNumber) {
  const Array x = reals({4}, {1, kNan, kInf, -1});
  EXPECT_EQ(topk(x, 4, 0, true)[1].i(), (Ints{1, 2, 0, 3}));
  EXPECT_EQ(topk(x, 4, 0, false)[1].i(), (Ints{3, 0, 2, 1}));
}

TEST(TopK, MiddleDimensionIsASort) {
  const Array x = random_array(DType::kF64, {3, 17, 2}, 5);
  const auto r = topk(x, 17, 1, true);
  for (int64_t a = 0; a < 3; ++a) {
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t k = 0; k < 17; ++k) {
        const auto index = static_cast<int64_t>(real_at(r[1], {a, k, b}));
        EXPECT_EQ(real_at(r[0], {a, k, b}), real_at(x, {a, index, b}));
        if (k > 0) {
          EXPECT_GE(real_at(r[0], {a, k - 1, b}), real_at(r[0], {a, k, b}));
        }
      }
    }
  }
}

}  // namespace
}  // namespace heddle::ir::testing
