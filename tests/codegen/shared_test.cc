// Graphs whose values are read several times each, which have far more paths than nodes, and graphs of more nodes than
// one kernel should have. A walk that follows every path, or a kernel of everything, would not end here.
#include <gtest/gtest.h>

#include "harness.h"
#include "schedule/region/stitch.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Ints;
using ir::Op;
using ir::ValueId;

ValueId parameter(Builder& b, const Shape& shape) {
  return input(b, "x", DType::kF32, shape);
}
void output(Builder& b, ValueId v) {
  b.graph().output("y", v);
}

ValueId slice(Builder& b, ValueId x, int64_t begin, int64_t end) {
  return b.emit(Op::kSlice, {x}, {{"starts", Ints{begin}}, {"limits", Ints{end}}, {"strides", Ints{1}}});
}
ValueId pad(Builder& b, ValueId x, int64_t low, int64_t high) {
  const ValueId zero = b.constant(Tensor::of<float>(DType::kF32, {}, std::vector<float>{0}));
  return b.emit(Op::kPad, {x, zero}, {{"low", Ints{low}}, {"high", Ints{high}}, {"mode", std::string("constant")}});
}
ValueId halved(Builder& b, ValueId x) {
  return b.binary(Op::kMul, x, 0.5);
}

TEST(Shared, NewtonSteps) {
  Batch batch;
  batch.add("root", [](Builder& b) {
    const ValueId x = b.binary(Op::kAdd, b.unary(Op::kAbs, parameter(b, {37})), 1.0);
    ValueId y = x;
    for (int step = 0; step < 200; ++step) y = halved(b, b.add(y, b.binary(Op::kDiv, x, y)));
    output(b, y);
  });
  batch.run();
}

TEST(Shared, SumsOfAValueWithItself) {
  Batch batch;
  batch.add("sum", [](Builder& b) {
    ValueId t = parameter(b, {37});
    for (int step = 0; step < 100; ++step) t = halved(b, b.add(t, t));
    output(b, t);
  });
  batch.add("square", [](Builder& b) {
    ValueId t = parameter(b, {37});
    for (int step = 0; step < 40; ++step) t = b.binary(Op::kMin, b.mul(t, t), 1.0);
    output(b, t);
  });
  batch.add("silu", [](Builder& b) {
    ValueId t = parameter(b, {37});
    for (int step = 0; step < 60; ++step) {
      const ValueId e = b.binary(Op::kAdd, b.unary(Op::kExp, b.unary(Op::kNeg, t)), 1.0);
      t = b.binary(Op::kDiv, t, e);
    }
    output(b, t);
  });
  batch.run();
}

// Every step reads the one before at two indices: expressions of 2^n places.
TEST(Shared, IndicesThatDouble) {
  Batch batch;
  batch.add(
      "gather",
      [](Builder& b) {
        ValueId t = parameter(b, {37});
        const ValueId at = input(b, "i", DType::kI32, {37});
        for (int step = 0; step < 14; ++step) t = halved(b, b.add(t, b.gather(t, at, 0)));
        output(b, t);
      },
      0, 37);
  batch.add("roll", [](Builder& b) {
    ValueId t = parameter(b, {64});
    for (int step = 0; step < 12; ++step) {
      const int64_t by = int64_t{1} << step % 6;
      const ValueId rolled = b.emit(Op::kConcat, {slice(b, t, by, 64), slice(b, t, 0, by)}, {{"dim", int64_t{0}}});
      t = halved(b, b.add(t, rolled));
    }
    output(b, t);
  });
  batch.run();
}

// Guards whose two sides compute the same value, one in the other: texts of 2^n statements.
TEST(Shared, SidesOfGuards) {
  Batch batch;
  batch.add("update", [](Builder& b) {
    ValueId t = parameter(b, {64});
    for (int step = 0; step < 48; ++step) {
      const int64_t at = 1 + step;
      t = b.emit(Op::kConcat, {slice(b, t, 0, at), b.unary(Op::kNeg, slice(b, t, at, 64))}, {{"dim", int64_t{0}}});
    }
    output(b, t);
  });
  batch.add("pad", [](Builder& b) {
    ValueId t = parameter(b, {64});
    for (int step = 0; step < 40; ++step) {
      t = halved(b, b.add(pad(b, slice(b, t, 1, 64), 1, 0), pad(b, slice(b, t, 0, 63), 0, 1)));
    }
    output(b, t);
  });
  batch.run();
}

// Indices that are divided again in every step share what they divide.
TEST(Shared, DividedIndices) {
  Batch batch;
  batch.add("shuffle", [](Builder& b) {
    ValueId t = parameter(b, {60});
    for (int step = 0; step < 40; ++step) {
      const Shape halves = step % 2 == 0 ? Shape{6, 10} : Shape{4, 15};
      t = b.unary(Op::kNeg, b.reshape(b.transpose(b.reshape(t, halves), {1, 0}), {60}));
    }
    output(b, t);
  });
  batch.run();
}

TEST(Shared, ChainsAreCutIntoKernels) {
  Batch batch;
  batch.add("chain", [](Builder& b) {
    ValueId t = parameter(b, {37});
    for (int step = 0; step < 2000; ++step)
      t = b.binary(step % 2 == 0 ? Op::kMax : Op::kMul, t, step % 2 == 0 ? -3 : 0.999);
    output(b, t);
  });
  batch.add("sines", [](Builder& b) {
    ValueId t = parameter(b, {5});
    for (int step = 0; step < 300; ++step) t = b.unary(Op::kSin, t);
    output(b, t);
  });
  batch.run();
}

}  // namespace
}  // namespace heddle::testing
