#include <gtest/gtest.h>

#include "harness.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;

ir::ValueId input(Builder& b, const std::string& name, DType dtype, Shape shape) {
  return b.graph().parameter(name, {dtype, std::move(shape)});
}

TEST(Stitch, Elementwise) {
  Batch batch;
  for (int64_t n : {1, 5, 16, 37, 1000}) {
    batch.add("gelu" + std::to_string(n), [&](Builder& b) {
      const auto x = input(b, "x", DType::kF32, {3, n});
      const auto e = b.unary(Op::kErf, b.binary(Op::kMul, x, 0.70710678));
      b.graph().output("y", b.mul(b.binary(Op::kMul, x, 0.5), b.binary(Op::kAdd, e, 1.0)));
    });
  }
  batch.add("bias", [&](Builder& b) {
    const auto x = input(b, "x", DType::kF32, {4, 5, 19});
    const auto w = input(b, "w", DType::kF32, {5, 1});
    b.graph().output("y", b.add(x, w));
  });
  batch.add("softmax", [&](Builder& b) {
    const auto x = input(b, "x", DType::kF32, {4, 5, 19});
    b.graph().output("y", b.softmax(x, {2}));
  });
  batch.add("softmax1", [&](Builder& b) {
    const auto x = input(b, "x", DType::kF32, {4, 5, 19});
    b.graph().output("y", b.softmax(x, {1}));
  });
  batch.run();
}

}  // namespace
}  // namespace heddle::testing
