#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "harness.h"
#include "schedule/region/stitch.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

// Statistics of short rows, which several lanes of one vector compute side by side: every length around the sizes of
// vectors and parts of them, counts that fill no block.
TEST(Rows, StatisticsOfShortRows) {
  Batch batch;
  const int64_t counts[] = {33, 64, 97, 1000};
  int64_t turn = 0;
  for (const int64_t length : {2, 3, 4, 5, 8, 13, 16, 17, 24, 32, 50}) {
    const int64_t rows = counts[turn++ % 4];
    batch.add("softmax" + std::to_string(length), [&](Builder& b) {
      b.graph().output("y", b.softmax(input(b, "x", DType::kF32, {rows, length}), {1}));
    });
    batch.add("norm" + std::to_string(length), [&](Builder& b) {
      const ValueId x = b.cast(input(b, "x", DType::kF16, {rows, length}), DType::kF32);
      const ValueId scale = input(b, "scale", DType::kF32, {length});
      const ValueId centred = b.sub(x, b.mean(x, {1}, true));
      const ValueId variance = b.mean(b.mul(centred, centred), {1}, true);
      const ValueId normal = b.mul(centred, b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5)));
      b.graph().output("y", b.cast(b.mul(normal, scale), DType::kF16));
      b.graph().output("variance", variance);
    });
  }
  batch.run();
}

// Other reductions, other types, and rows that are parts of longer ones.
TEST(Rows, EveryReductionOfShortRows) {
  Batch batch;
  for (const DType dtype : {DType::kF64, DType::kBF16, DType::kI64, DType::kI32, DType::kU8, DType::kI8}) {
    for (const char* kind : {"sum", "max"}) {
      batch.add(std::string(kind) + std::string(to_string(dtype)), [&](Builder& b) {
        const ValueId x = input(b, "x", dtype, {131, 6});
        b.graph().output("y", b.sub(x, b.reduce(kind, x, {1}, true)));
      });
    }
    batch.add("arg" + std::string(to_string(dtype)), [&](Builder& b) {
      const ValueId x = input(b, "x", dtype, {131, 6});
      const ValueId y =
          b.emit(Op::kArgReduce, {x}, {{"kind", std::string("max")}, {"dim", int64_t{1}}, {"last", true}});
      b.graph().output("y", y);
      b.graph().output("z", b.reduce("min", x, {1}));
    });
  }
  batch.add("any", [](Builder& b) {
    const ValueId x = input(b, "x", DType::kBool, {99, 5});
    b.graph().output("y", b.reduce("any", x, {1}));
    b.graph().output("z", b.reduce("all", x, {1}));
  });
  batch.add("part of a row", [](Builder& b) {
    const ValueId x = b.slice(input(b, "x", DType::kF32, {77, 11}), {0, 2}, {77, 9});
    b.graph().output("y", b.softmax(x, {1}));
  });
  batch.add("padded rows", [](Builder& b) {
    const ValueId x = b.pad(input(b, "x", DType::kF32, {77, 7}), b.scalar(DType::kF32, -1), {0, 2}, {0, 1});
    b.graph().output("y", b.softmax(x, {1}));
  });
  batch.add("joined rows", [](Builder& b) {
    const ValueId parts[] = {input(b, "x", DType::kF32, {77, 3}), input(b, "z", DType::kF32, {77, 6})};
    b.graph().output("y", b.softmax(b.concat(parts, 1), {1}));
  });
  batch.add("masked", [](Builder& b) {
    const ValueId x = input(b, "x", DType::kF32, {3, 4, 50, 9}), mask = input(b, "mask", DType::kF32, {3, 1, 1, 9});
    b.graph().output("y", b.softmax(b.add(x, mask), {3}));
  });
  batch.add("reused output", [](Builder& b) {
    const ValueId x = input(b, "x", DType::kF32, {77, 6});
    const ValueId e = b.unary(Op::kExp, x);
    b.graph().output("e", e);
    b.graph().output("y", b.div(e, b.reduce("sum", e, {1}, true)));
  });
  batch.run();
}

// Layout changes with a short side in either direction.
TEST(Rows, ShortTransposes) {
  Batch batch;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kU8, DType::kI64}) {
    for (const int64_t side : {3, 8, 13, 50}) {
      const std::string name = std::string(to_string(dtype)) + "x" + std::to_string(side);
      batch.add("out" + name, [&](Builder& b) {
        b.graph().output("y", b.transpose(input(b, "x", dtype, {side, 301}), {1, 0}));
      });
      batch.add("in" + name, [&](Builder& b) {
        b.graph().output("y", b.transpose(input(b, "x", dtype, {2, 301, side}), {0, 2, 1}));
      });
    }
  }
  batch.run();
}

// Sums down short columns, whose rows are read several at a time, with rests that fill no row.
TEST(Rows, SumsDownShortColumns) {
  Batch batch;
  for (const DType dtype : {DType::kF32, DType::kI32, DType::kF16}) {
    const std::string name(to_string(dtype));
    batch.add(name + "x3", [&](Builder& b) {
      const ValueId x = b.cast(input(b, "x", dtype, {20011, 3}), dtype == DType::kI32 ? dtype : DType::kF32);
      b.graph().output("y", b.reduce("sum", x, {0}));
      b.graph().output("z", b.reduce("max", x, {0}));
    });
    batch.add(name + "x37", [&](Builder& b) {
      b.graph().output("y", b.reduce("max", input(b, "x", dtype, {101, 23, 37}), {0, 1}));
    });
  }
  batch.add("wide", [](Builder& b) {
    b.graph().output("y", b.reduce("sum", input(b, "x", DType::kF32, {23, 4099}), {0}));
  });
  batch.add("apart", [](Builder& b) {
    b.graph().output("y", b.reduce("sum", input(b, "x", DType::kF32, {503, 5, 17, 3}), {0, 2}));
  });
  batch.add("two", [](Builder& b) {
    const ValueId x = input(b, "x", DType::kF32, {4500, 12});
    const ValueId centred = b.sub(x, b.mean(x, {0}, true));
    b.graph().output("y", b.mean(b.mul(centred, centred), {0}));
  });
  batch.run();
}

// The rule is one of cost: packing is for short rows alone.
TEST(Rows, OnlyShortRowsArePacked) {
  for (const auto& [length, packed] : std::vector<std::pair<int64_t, bool>>{{5, true}, {16, true}, {512, false}}) {
    ir::Graph graph;
    Builder b(graph);
    graph.output("y", b.softmax(input(b, "x", DType::kF32, {1000, length}), {1}));
    Target target = test_target(1);
    target.cpu.isa = CpuIsa::kAvx512;  // what is short depends on the lanes of a vector; nothing runs here
    const auto group = schedule::schedule(graph, whole_graph(graph), target);
    ASSERT_EQ(group.kernels.size(), 1u);
    const auto& body = std::get<std::shared_ptr<const schedule::CpuStitchDesc>>(group.kernels[0].desc.body);
    EXPECT_EQ(body->stages[0].packed, packed) << length;
    EXPECT_EQ(body->stages.back().transposed_stores.empty(), !packed) << length;
  }
}

}  // namespace
}  // namespace heddle::testing
