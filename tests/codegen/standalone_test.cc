#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

// Every reduction with repeated and negative indices, along every dimension, index tensors smaller than the data.
TEST(Separate, ScatterElements) {
  Batch batch;
  const std::vector<std::pair<Shape, Shape>> shapes = {{{7}, {13}}, {{5, 6}, {3, 4}}, {{4, 3, 5}, {3, 3, 5}}};
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    for (const auto& [data, indices] : shapes) {
      for (int64_t dim = 0; dim < static_cast<int64_t>(data.size()); ++dim) {
        for (const DType dtype : {DType::kF32, DType::kF16, DType::kI8}) {
          if (dtype != DType::kF32 && (dim + static_cast<int64_t>(data.size())) % 2 == 0) continue;
          batch.add(
              fmt::format("{}{}{}{}", reduction, data.size(), dim, to_string(dtype)),
              [&](Builder& b) {
                const ValueId x = input(b, "x", dtype, data), at = input(b, "at", DType::kI64, indices);
                b.graph().output("y", b.emit(Op::kScatterElements, {x, at, input(b, "u", dtype, indices)},
                                             {{"dim", dim}, {"reduction", reduction}}));
              },
              0, 3);
        }
      }
    }
  }
  batch.run();
}

TEST(Separate, ScatterNd) {
  Batch batch;
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    for (int64_t depth = 1; depth <= 3; ++depth) {
      for (const DType dtype : {DType::kF32, DType::kI64, DType::kBF16}) {
        batch.add(
            fmt::format("{}{}{}", reduction, depth, to_string(dtype)),
            [&](Builder& b) {
              const Shape data = {4, 5, 37};
              Shape updates = {2, 3};
              updates.insert(updates.end(), data.begin() + depth, data.end());
              const ValueId x = input(b, "x", dtype, data), at = input(b, "at", DType::kI32, {2, 3, depth});
              b.graph().output(
                  "y", b.emit(Op::kScatterNd, {x, at, input(b, "u", dtype, updates)}, {{"reduction", reduction}}));
            },
            0, 4);
      }
    }
  }
  batch.run();
}

// Both orders, every k, ties (small integers), columns that are not contiguous.
// Large enough for several tasks: rows and columns are divided, and the elements of a vector. Into data or one value.
TEST(Separate, LargeScatters) {
  Batch batch;
  for (const bool fills : {false, true}) {
    const auto begin = [fills](Builder& b, const Shape& shape) {
      return fills ? b.full(DType::kF32, shape, 3) : input(b, "x", DType::kF32, shape);
    };
    for (const auto& [data, indices, updates, dim] :
         std::vector<std::tuple<Shape, Shape, Shape, int64_t>>{{{700, 301}, {90, 301}, {90, 301}, 0},
                                                               {{700, 301}, {90, 1}, {90, 290}, 0},
                                                               {{3, 701, 130}, {3, 50, 1}, {3, 50, 130}, 1},
                                                               {{220000}, {900}, {900}, 0}}) {
      batch.add(
          fmt::format("elements {} {}{}", heddle::to_string(data), heddle::to_string(indices), fills ? " filled" : ""),
          [&](Builder& b) {
            const ValueId at = input(b, "at", DType::kI64, indices);
            b.graph().output("y",
                             b.emit(Op::kScatterElements, {begin(b, data), at, input(b, "u", DType::kF32, updates)},
                                    {{"dim", dim}, {"reduction", std::string("add")}}));
          },
          2e-5, data[static_cast<size_t>(dim)]);
    }
    for (const auto& [rows, inner, updates, limit] :
         std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t>>{{701, 300, 90, 701},
                                                                     {20000, 11, 300, 20000},
                                                                     {220000, 1, 500, 220000},
                                                                     {3, 70001, 20, 3},
                                                                     {700, 300, 200, 1}}) {
      batch.add(
          fmt::format("slices {} {} at {}{}", rows, inner, limit, fills ? " filled" : ""),
          [&](Builder& b) {
            const ValueId at = input(b, "at", DType::kI64, {updates, 1});
            b.graph().output(
                "y", b.emit(Op::kScatterNd, {begin(b, {rows, inner}), at, input(b, "u", DType::kF32, {updates, inner})},
                            {{"reduction", std::string("add")}}));
          },
          2e-5, limit);
    }
  }
  batch.run();
}

TEST(Separate, TopK) {
  Batch batch;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kF64, DType::kI64, DType::kI8, DType::kU32, DType::kU8}) {
    for (const int64_t k : {1, 5, 29}) {
      for (const bool largest : {false, true}) {
        batch.add(fmt::format("{}{}{}", to_string(dtype), k, largest), [&](Builder& b) {
          const int64_t dim = k == 5 ? 1 : 2;
          const ValueId x = input(b, "x", dtype, dim == 1 ? Shape{3, 29, 4} : Shape{3, 2, 29});
          const auto both = b.emit_all(Op::kTopK, {x},
                                       {{"k", k}, {"dim", dim}, {"largest", int64_t{largest}}, {"sorted", int64_t{1}}});
          b.graph().output("values", both[0]);
          b.graph().output("at", both[1]);
        });
      }
    }
  }
  batch.run();
}

// NaN above every number, both zeros equal.
TEST(Separate, TopKOfSpecialNumbers) {
  Batch batch;
  for (const bool largest : {false, true}) {
    batch.add_text(fmt::format("special{}", largest),
                   fmt::format("graph g(%x: f32[9]) {{\n%c = constant {{value = f32[9]{{0, nan, -0, 1, -inf, nan, inf, "
                               "0, -1}}}}\n%s = add(%x, %c) : f32[9]\n%z = sub(%s, %x) : f32[9]\n%0, %1 = topk(%c) {{k "
                               "= 8, dim = 0, largest = {}, sorted = 1}} : f32[8], i64[8]\nreturn \"z\" = %z, \"v\" = "
                               "%0, \"i\" = %1\n}}",
                               largest ? 1 : 0));
  }
  batch.run();
}

// Between generated kernels: operands are made before, results are read after; constants of one value are made too.
TEST(Separate, AmongOtherNodes) {
  Batch batch;
  batch.add(
      "between",
      [](Builder& b) {
        const ValueId x = input(b, "x", DType::kF32, {40, 33}), at = input(b, "at", DType::kI64, {7, 1});
        const ValueId zeros = b.full(DType::kF32, {40, 33}, 0);
        const ValueId updates = b.unary(Op::kExp, b.slice_dim(x, 0, 0, 7));
        const ValueId y = b.emit(Op::kScatterNd, {zeros, at, updates}, {{"reduction", std::string("add")}});
        b.graph().output("y", b.softmax(b.add(y, x), {1}));
      },
      0, 40);
  batch.add("ranks", [](Builder& b) {
    const ValueId x = b.softmax(input(b, "x", DType::kF32, {5, 100}), {1});
    const auto best =
        b.emit_all(Op::kTopK, {x}, {{"k", int64_t{3}}, {"dim", int64_t{1}}, {"largest", true}, {"sorted", true}});
    b.graph().output("p", b.binary(Op::kMul, best[0], 2.0));
    b.graph().output("again", b.emit(Op::kGatherElements, {x, best[1]}, {{"dim", int64_t{1}}}));
  });
  batch.run();
}

}  // namespace
}  // namespace heddle::testing
