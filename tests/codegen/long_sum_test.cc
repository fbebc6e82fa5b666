#include <gtest/gtest.h>

#include "harness.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;

// Sums of thousands of nearly equal values, down columns and along rows: the variance as E[x^2] - E[x]^2, which some
// exporters write, keeps only the digits that these sums keep.
TEST(Stitch, LongSumsKeepTheirDigits) {
  constexpr double kTwoRoundings = 2.4e-7;
  Batch batch;
  for (const int64_t axis : {0, 1}) {
    batch.add(
        "axis" + std::to_string(axis),
        [&](Builder& b) {
          const auto x = b.graph().parameter("x", {DType::kF32, axis == 0 ? Shape{3000, 37} : Shape{37, 3000}});
          b.graph().output("y", b.reduce("sum", b.binary(Op::kAdd, x, 1000.0), {axis}));
        },
        kTwoRoundings);
  }
  batch.run();
}

// Rows in vectors, in single elements, in several loops; columns; split between threads.
TEST(Stitch, SumsOfVeryManyTermsKeepTheirDigits) {
  constexpr double kTwoRoundings = 2.4e-7;
  const std::pair<Shape, ir::Ints> cases[] = {{{200003}, {0}},         {{3, 150000}, {1}},   {{150000, 3}, {0}},
                                              {{40, 3, 5000}, {0, 2}}, {{2, 90001, 5}, {1}}, {{20000, 32, 4}, {0, 2}}};
  Batch batch;
  for (const auto& [shape, dims] : cases) {
    batch.add(
        to_string(shape),
        [&](Builder& b) {
          const auto x = b.graph().parameter("x", {DType::kF32, shape});
          b.graph().output("y", b.reduce("sum", b.binary(Op::kAdd, x, 1000.0), dims));
        },
        kTwoRoundings);
  }
  batch.run();
}

}  // namespace
}  // namespace heddle::testing
