// Sums and other reductions of columns, alone and beside the rows that they are of.
#include <gtest/gtest.h>

#include "machine.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;

// The gradient of a layer norm, in two types: rows are normalised while columns are summed.
void layer_norm_gradient(Builder& b, int64_t m, int64_t n, DType dtype) {
  const auto dy = input(b, "dy", dtype, {m, n}), x = input(b, "x", dtype, {m, n}), g = input(b, "g", dtype, {n});
  const auto centred = b.sub(x, b.mean(x, {1}, true));
  const auto r = b.unary(Op::kRsqrt, b.binary(Op::kAdd, b.mean(b.mul(centred, centred), {1}, true), 1e-5));
  const auto normal = b.mul(centred, r), weighted = b.mul(dy, g);
  const auto c1 = b.mean(b.mul(normal, weighted), {1}, true), c2 = b.mean(weighted, {1}, true);
  const auto dx = b.mul(b.sub(b.sub(weighted, b.mul(normal, c1)), c2), r);
  b.graph().output("dx", dx);
  b.graph().output("cast", b.cast(dx, dtype == DType::kF16 ? DType::kF32 : DType::kF16));
  b.graph().output("dg", b.reduce("sum", b.mul(dy, normal), {0}, false));
  b.graph().output("db", b.reduce("sum", dy, {0}, false));
}

// The gradient of a norm. Its operands and results have rows in two orders, [m, k] and [k, m], with sums over the rows
// of both.
void gradient_in_two_orders(Builder& b, int64_t m, int64_t k, int64_t n, DType dtype) {
  const Shape shape = {m, k, n};
  const auto turned = [&](ir::ValueId v) { return b.emit(Op::kTranspose, {v}, {{"perm", ir::Ints{1, 0, 2}}}); };
  const auto dy = b.cast(b.reshape(input(b, "dy", dtype, {k * m, n}), {k, m, n}), DType::kF32);
  const auto x = turned(input(b, "x", DType::kF32, {k, m, n})), gradient = turned(dy);
  const auto centred = b.sub(x, b.mean(x, {2}, true));
  const auto r = b.unary(Op::kRsqrt, b.binary(Op::kAdd, b.mean(b.mul(centred, centred), {2}, true), 1e-5));
  const auto normal = b.mul(centred, r), c = b.mean(b.mul(normal, gradient), {2}, true);
  const auto dx = b.mul(b.sub(gradient, b.mul(normal, c)), r);
  const auto sum = b.cast(b.add(input(b, "residual", DType::kF32, shape), dx), dtype);
  b.graph().output("sum", b.reshape(sum, {m * k, n}));
  b.graph().output("turned", b.reshape(turned(sum), {k * m, n}));
  b.graph().output("bias", b.reduce("sum", b.reshape(sum, {m * k, n}), {0}, false));
  b.graph().output("dg", b.reduce("sum", b.mul(gradient, normal), {0, 1}, false));
  b.graph().output("db", b.reduce("sum", dy, {0, 1}, false));
}

TEST(CudaStitch, ColumnSumsRideAlongWithRowsInTwoOrders) {
  Batch batch;
  batch.add(
      "f16", [](Builder& b) { gradient_in_two_orders(b, 33, 32, 96, DType::kF16); }, 0.1);
  batch.add(
      "bf16", [](Builder& b) { gradient_in_two_orders(b, 37, 59, 40, DType::kBF16); }, 0.5);
  batch.run();
}

// Rows without reductions along them, in one step and in two.
TEST(CudaStitch, ColumnSumsRideAlongWithWideRows) {
  Batch batch;
  for (const bool in_steps : {false, true}) {
    batch.add(
        in_steps ? "in two steps" : "in one",
        [in_steps](Builder& b) {
          const int64_t m = 528, n = in_steps ? 2504 : 4100;
          const auto y = b.unary(Op::kTanh, input(b, "x", DType::kF32, {m, n}));
          b.graph().output("y", y);
          const auto first = b.reduce("sum", b.reshape(y, {m / 16, 16, n}), {1}, false);
          b.graph().output("s", in_steps ? b.reduce("sum", first, {0}, false) : b.reduce("sum", y, {0}, false));
        },
        1e-3);
  }
  batch.run();
}

TEST(CudaStitch, ColumnSumsRideAlong) {
  Batch batch;
  for (const auto& [m, n] :
       {std::pair<int64_t, int64_t>{2048, 64}, {8448, 40}, {2112, 96}, {2048, 33}, {1031, 100}, {640, 1500}}) {
    batch.add(
        "gradient" + std::to_string(n),
        [&, m = m, n = n](Builder& b) { layer_norm_gradient(b, m, n, n == 64 ? DType::kF16 : DType::kF32); },
        n == 64 ? 0.1 : 2e-3);
  }
  batch.add(
      "bias",
      [&](Builder& b) {
        const auto dy = input(b, "dy", DType::kF32, {32, 64, 40});
        b.graph().output("dx", b.binary(Op::kMul, dy, 0.5));
        b.graph().output("db", b.reduce("sum", dy, {0, 1}, false));
        b.graph().output("most", b.reduce("max", dy, {0, 1}, false));
      },
      1e-3);
  // All elements, in a prime number of rows, which no number of parts divides.
  batch.add(
      "one column",
      [](Builder& b) {
        const auto dy = input(b, "dy", DType::kF32, {65537, 1});
        b.graph().output("dx", b.binary(Op::kMul, dy, 0.5));
        b.graph().output("db", b.reduce("sum", dy, {0}, false));
      },
      0.05);
  batch.run();
}

// Rows and columns of one input that are both only reduced.
void both_axes(Builder& b, int64_t m, int64_t n, const std::string& rows, const std::string& columns) {
  const auto x = input(b, "x", DType::kF32, {m, n});
  b.graph().output("rows", b.reduce(rows, x, {1}, false));
  b.graph().output("columns", b.reduce(columns, b.binary(Op::kMul, x, 0.5), {0}, false));
}

// Each of four reductions needs the one before it.
void alternate_axes(Builder& b, int64_t m, int64_t n) {
  const auto x = input(b, "x", DType::kF32, {m, n});
  const auto centred = b.sub(x, b.mean(x, {1}, true));
  const auto scaled = b.mul(centred, b.mean(centred, {0}, true));
  b.graph().output("y", b.reduce("max", b.sub(scaled, b.reduce("max", scaled, {1}, true)), {0}, false));
}

TEST(CudaStitch, ColumnsRideAlongWithReductionsOfRows) {
  Batch batch;
  batch.add(
      "even", [](Builder& b) { both_axes(b, 2640, 1024, "sum", "max"); }, 1e-3);
  batch.add(
      "uneven", [](Builder& b) { both_axes(b, 3001, 1100, "max", "min"); }, 1e-3);
  batch.add(
      "a chain", [](Builder& b) { alternate_axes(b, 2641, 900); }, 1e-3);
  batch.run();
}

TEST(CudaStitch, RowsAndColumnsAreReadOnce) {
  const auto kernels = [](int64_t m, int64_t n) {
    ir::Graph graph;
    Builder b(graph);
    both_axes(b, m, n, "max", "sum");
    return schedule::schedule(graph, whole_graph(graph), test_target());
  };
  const schedule::ScheduledGroup large = kernels(8192, 1024);
  ASSERT_EQ(large.kernels.size(), 2u) << "rows with parts of the columns, then the columns";
  EXPECT_LT(large.kernels[0].stitch.bytes_moved + large.kernels[1].stitch.bytes_moved, 1.2 * 8192 * 1024 * 4);
  // The shape whose number of rows is a square of its columns.
  ir::Graph graph;
  Builder b(graph);
  alternate_axes(b, 65536, 256);
  EXPECT_EQ(schedule::schedule(graph, whole_graph(graph), test_target()).kernels.size(), 4u);
}

TEST(CudaStitch, ColumnsAndBatchStatistics) {
  Batch batch;
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{3000, 64}, {4096, 96}, {1000, 37}, {17, 5000}, {4097, 8}}) {
    batch.add(
        "statistics" + std::to_string(m) + "x" + std::to_string(n),
        [&, m = m, n = n](Builder& b) {
          const auto x = input(b, "x", DType::kF32, {m, n}), g = input(b, "g", DType::kF32, {n});
          const auto centred = b.sub(x, b.mean(x, {0}, true));
          const auto variance = b.mean(b.mul(centred, centred), {0}, true);
          const auto r = b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5));
          b.graph().output("y", b.binary(Op::kMax, b.mul(b.mul(centred, r), g), 0.0));
        },
        1e-3);
  }
  // Columns that a cluster keeps on the chip, in registers or, where they are many, in shared memory.
  for (const auto& [dtype, m] :
       {std::pair<DType, int64_t>{DType::kF32, 1100}, {DType::kF16, 1100}, {DType::kF16, 6301}}) {
    batch.add(
        "cluster" + std::to_string(m) + std::string(to_string(dtype)),
        [&, dtype = dtype, m = m](Builder& b) {
          const auto x = b.cast(input(b, "x", dtype, {m, 256}), DType::kF32), g = input(b, "g", DType::kF32, {256});
          const auto centred = b.sub(x, b.mean(x, {0}, true));
          const auto variance = b.mean(b.mul(centred, centred), {0}, false);
          const auto r = b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5));
          b.graph().output("y", b.mul(b.mul(centred, b.broadcast(r, {m, 256}, {1})), b.broadcast(g, {m, 256}, {1})));
          b.graph().output("v", variance);
        },
        1e-3);
  }
  for (DType dtype : {DType::kI32, DType::kI8, DType::kF64, DType::kBF16}) {
    batch.add(
        "columns" + std::string(to_string(dtype)),
        [&](Builder& b) {
          const auto x = input(b, "x", dtype, {700, 48});
          b.graph().output("sum", b.reduce("sum", x, {0}, false));
          b.graph().output("max", b.reduce("max", x, {0}, false));
          b.graph().output("arg", b.emit(Op::kArgReduce, {x},
                                         {{"kind", std::string("max")}, {"dim", int64_t{0}}, {"last", int64_t{0}}}));
        },
        dtype == DType::kBF16 ? 0.5 : 0);
  }
  batch.run();
}

}  // namespace
}  // namespace heddle::testing
