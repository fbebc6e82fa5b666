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

}  // namespace
}  // namespace heddle::testing
