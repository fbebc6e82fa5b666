#include "tests/ir/testing.h"

namespace heddle::ir::testing {
namespace {

TEST(Indexing, GatherIsNumpyTake) {
  const Array data = random_array(DType::kF64, {3, 5, 7}, 1);
  const Array indices = random_array(DType::kI32, {2, 4}, 2, -5, 4);
  const Array y = eval_op(Op::kGather, {data, indices}, {{"dim", int64_t{1}}})[0];
  EXPECT_EQ(y.shape, (Shape{3, 2, 4, 7}));
  expect_elements(y, [&](const Coordinates& c) {
    const auto index = static_cast<int64_t>(real_at(indices, {c[1], c[2]}));
    return real_at(data, {c[0], index < 0 ? index + 5 : index, c[3]});
  });
}

TEST(Indexing, GatherScalarAndEmptyIndices) {
  const Array data = random_array(DType::kI8, {3, 5}, 1, -99, 99);
  const Array row = eval_op(Op::kGather, {data, integers({}, {-1})}, {{"dim", int64_t{0}}})[0];
  expect_elements(row, [&](const Coordinates& c) { return real_at(data, {2, c[0]}); });
  EXPECT_EQ(eval_op(Op::kGather, {data, integers({0}, {})}, {{"dim", int64_t{1}}})[0].shape, (Shape{3, 0}));
}

TEST(Indexing, OutOfRangeIsAnErrorWithTheIndex) {
  const Array data = random_array(DType::kF64, {3, 5}, 1);
  for (int64_t bad : {int64_t{5}, int64_t{-6}, INT64_MAX, INT64_MIN}) {
    try {
      eval_op(Op::kGather, {data, integers({2}, {0, bad})}, {{"dim", int64_t{1}}});
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kValueOutOfRange);
      EXPECT_NE(std::string(error.what()).find(fmt::format("{} is outside [-5, 5)", bad)), std::string::npos)
          << error.what();
    }
  }
  EXPECT_THROW(eval_op(Op::kGather, {data, integers({1}, {-1}, DType::kU64)}, {{"dim", int64_t{1}}}), Error);
  EXPECT_THROW(eval_op(Op::kGatherElements, {data, integers({1, 1}, {3})}, {{"dim", int64_t{0}}}), Error);
  EXPECT_THROW(eval_op(Op::kGatherNd, {data, integers({2}, {0, 5})}, {{"batch_dims", int64_t{0}}}), Error);
  EXPECT_THROW(eval_op(Op::kScatterNd, {data, integers({1, 1}, {3}), random_array(DType::kF64, {1, 5}, 2)},
                       {{"reduction", "none"}}),
               Error);
}

TEST(Indexing, GatherElementsAlongEveryDimension) {
  const Array data = random_array(DType::kF64, {3, 5, 4}, 3);
  for (int64_t dim = 0; dim < 3; ++dim) {
    Shape shape = {2, 3, 4};
    shape[static_cast<size_t>(dim)] = 6;
    const int64_t extent = data.shape[static_cast<size_t>(dim)];
    const Array indices =
        random_array(DType::kI64, shape, 4, static_cast<double>(-extent), static_cast<double>(extent - 1));
    const Array y = eval_op(Op::kGatherElements, {data, indices}, {{"dim", dim}})[0];
    expect_elements(y, [&](const Coordinates& c) {
      Coordinates from = c;
      const auto index = static_cast<int64_t>(real_at(indices, c));
      from[static_cast<size_t>(dim)] = index < 0 ? index + extent : index;
      return real_at(data, from);
    });
  }
}

TEST(Indexing, GatherNdWithBatchDimensions) {
  const Array data = random_array(DType::kF64, {2, 3, 5, 4}, 5);
  const Array indices = random_array(DType::kI64, {2, 7, 2}, 6, -3, 2);
  const Array y = eval_op(Op::kGatherNd, {data, indices}, {{"batch_dims", int64_t{1}}})[0];
  EXPECT_EQ(y.shape, (Shape{2, 7, 4}));
  expect_elements(y, [&](const Coordinates& c) {
    const auto i = static_cast<int64_t>(real_at(indices, {c[0], c[1], 0}));
    const auto j = static_cast<int64_t>(real_at(indices, {c[0], c[1], 1}));
    return real_at(data, {c[0], i < 0 ? i + 3 : i, j < 0 ? j + 5 : j, c[2]});
  });
  const Array all = eval_op(Op::kGatherNd, {data, integers({1, 4}, {1, 2, -1, 0})}, {{"batch_dims", int64_t{0}}})[0];
  EXPECT_EQ(all.f()[0], real_at(data, {1, 2, 4, 0}));
}

TEST(Indexing, ScatterElementsReductions) {
  const auto run = [](const char* reduction) {
    return eval_op(Op::kScatterElements,
                   {reals({4}, {10, 20, 30, 40}), integers({5}, {1, 1, -1, 0, 1}), reals({5}, {2, 3, 5, 7, -4})},
                   {{"dim", int64_t{0}}, {"reduction", reduction}})[0]
        .f();
  };
  EXPECT_EQ(run("none"), (std::vector<double>{7, -4, 30, 5}));
  EXPECT_EQ(run("add"), (std::vector<double>{17, 21, 30, 45}));
  EXPECT_EQ(run("mul"), (std::vector<double>{70, -480, 30, 200}));
  EXPECT_EQ(run("max"), (std::vector<double>{10, 20, 30, 40}));
  EXPECT_EQ(run("min"), (std::vector<double>{7, -4, 30, 5}));
}

TEST(Indexing, ScatterElementsIn2d) {
  const Array data = random_array(DType::kI32, {3, 5}, 7, -9, 9);
  const Array indices = integers({2, 3}, {2, 0, 1, 0, 2, 2});
  const Array updates = random_array(DType::kI32, {2, 3}, 8, -9, 9);
  const Array y =
      eval_op(Op::kScatterElements, {data, indices, updates}, {{"dim", int64_t{0}}, {"reduction", "add"}})[0];
  Array expected = data;
  for_each_coordinate(updates.shape, [&](const Coordinates& c) {
    expected.i()[linear_index({3, 5}, {indices.i()[linear_index({2, 3}, c)], c[1]})] +=
        updates.i()[linear_index({2, 3}, c)];
  });
  EXPECT_EQ(y.i(), expected.i());
}

TEST(Indexing, ScatterNdSlices) {
  const Array data = random_array(DType::kF64, {4, 3}, 9);
  const Array updates = random_array(DType::kF64, {2, 3}, 10);
  const Array y = eval_op(Op::kScatterNd, {data, integers({2, 1}, {-1, 1}), updates}, {{"reduction", "none"}})[0];
  expect_elements(y, [&](const Coordinates& c) {
    return c[0] == 3 ? real_at(updates, {0, c[1]}) : c[0] == 1 ? real_at(updates, {1, c[1]}) : real_at(data, c);
  });
  const Array wrapped =
      eval_op(Op::kScatterNd,
              {integers({2}, {250, 1}, DType::kU8), integers({2, 1}, {0, 0}), integers({2}, {5, 5}, DType::kU8)},
              {{"reduction", "add"}})[0];
  EXPECT_EQ(wrapped.i(), (Ints{4, 1}));
}

}  // namespace
}  // namespace heddle::ir::testing
