#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <variant>

#include "codegen/codegen.h"
#include "harness.h"
#include "schedule/region/stitch.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

// `points` places of an image for each batch entry, weighted: what sampling operators are made of.
ValueId sampled(Builder& b, ValueId image, ValueId at, int64_t taps) {
  const Shape shape = b.shape(image), places = b.shape(at);
  ValueId sum = 0;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const ValueId moved = b.binary(Op::kAdd, b.unary(Op::kFloor, at), static_cast<double>(tap));
    const ValueId inside = b.binary(Op::kMin, b.binary(Op::kMax, moved, -2.0), static_cast<double>(shape[2]));
    const ValueId weight = b.binary(Op::kMul, b.unary(Op::kExp, b.sub(at, moved)), 0.25);
    const ValueId wide = b.broadcast(weight, {shape[0], shape[1], places[1]}, {0, 2});
    const ValueId index = b.broadcast(b.cast(inside, DType::kI64), {shape[0], shape[1], places[1]}, {0, 2});
    const ValueId part = b.mul(b.emit(Op::kGatherElements, {image, index}, {{"dim", int64_t{2}}}), wide);
    sum = tap == 0 ? part : b.add(sum, part);
  }
  return sum;
}

// Rows of an image [pixels, channels] at computed places, weighted.
ValueId sampled_rows(Builder& b, ValueId image, ValueId at, int64_t taps) {
  const Shape shape = b.shape(image);
  Shape all = b.shape(at);
  ir::Ints dims(all.size());
  std::iota(dims.begin(), dims.end(), 0);
  all.push_back(shape[1]);
  ValueId sum = 0;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const ValueId moved = b.binary(Op::kAdd, b.unary(Op::kFloor, at), static_cast<double>(tap));
    const ValueId weight = b.binary(Op::kMul, b.unary(Op::kExp, b.sub(at, moved)), 0.25);
    const ValueId inside = b.binary(Op::kMin, b.binary(Op::kMax, moved, -2.0), static_cast<double>(shape[0]));
    const ValueId part = b.mul(b.gather(image, b.cast(inside, DType::kI64), 0), b.broadcast(weight, all, dims));
    sum = tap == 0 ? part : b.add(sum, part);
  }
  return sum;
}

std::vector<int64_t> steps_of(int64_t count, double step, int64_t first) {
  std::vector<int64_t> table;
  for (int64_t i = 0; i < count; ++i) table.push_back(first + static_cast<int64_t>(static_cast<double>(i) * step));
  return table;
}

void add_gathers(Batch& batch) {
  for (const auto& [channels, extent, points] :
       std::vector<std::tuple<int64_t, int64_t, int64_t>>{{32, 40, 7}, {5, 9, 130}, {64, 300, 1000}, {3, 20, 33}}) {
    batch.add("sampled " + std::to_string(channels) + " " + std::to_string(points), [&](Builder& b) {
      const ValueId x = input(b, "x", DType::kF32, {2, channels, extent}), at = input(b, "p", DType::kF32, {2, points});
      b.graph().output("y", sampled(b, x, at, 2));
    });
    batch.add("means of samples " + std::to_string(channels) + " " + std::to_string(points), [&](Builder& b) {
      const ValueId x = input(b, "x", DType::kF32, {2, channels, extent});
      const ValueId at = input(b, "p", DType::kF32, {2, 4 * points});
      const ValueId parts = b.reshape(sampled(b, x, at, 2), {2, channels, points, 4});
      b.graph().output("y", b.reduce("sum", parts, {3}));
      b.graph().output("most", b.reduce("max", parts, {3}));
    });
  }
  for (const auto& [channels, points] :
       std::vector<std::pair<int64_t, int64_t>>{{64, 100}, {17, 333}, {130, 20}, {48, 5}}) {
    batch.add("rows " + std::to_string(channels) + " " + std::to_string(points), [&](Builder& b) {
      const ValueId x = input(b, "x", DType::kF32, {40, channels});
      b.graph().output("y", sampled_rows(b, x, input(b, "p", DType::kF32, {points}), 3));
      const ValueId few = sampled_rows(b, x, input(b, "q", DType::kF32, {points, 3, 2}), 2);
      b.graph().output("means", b.reduce("sum", few, {1, 2}));
      b.graph().output("columns", b.transpose(few, {0, 3, 1, 2}));
    });
  }
  // Tables that ascend slowly, by more than a vector in a vector, and not at all; that end where the row does.
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kU8, DType::kI64, DType::kBool}) {
    for (const auto& [step, first] :
         std::vector<std::pair<double, int64_t>>{{0.5, 0}, {0.97, -41}, {1.6, 0}, {7, -99}}) {
      batch.add("table " + std::string(to_string(dtype)) + " " + std::to_string(step), [&](Builder& b) {
        for (const int64_t count : {11, 64, 83}) {
          const ValueId x = input(b, "x" + std::to_string(count), dtype, {3, 9, 100});
          std::vector<int64_t> table = steps_of(count, step, first);
          for (int64_t& at : table) at = std::clamp<int64_t>(at, -100, first < 0 ? -1 : 99);
          const ValueId rows = b.gather(x, b.ints({2, 0, 1, 1, 2}), 1);
          b.graph().output("y" + std::to_string(count), b.gather(rows, b.ints(table), 2));
        }
      });
    }
  }
  batch.add(
      "gather of a gather",
      [&](Builder& b) {
        const ValueId x = input(b, "x", DType::kF32, {30, 200}), first = input(b, "i", DType::kI64, {70});
        const ValueId second = b.gather(first, input(b, "j", DType::kI32, {150}), 0);
        b.graph().output("y", b.unary(Op::kAbs, b.gather(x, second, 1)));
      },
      0, 70);
  batch.add(
      "padded and reversed",
      [&](Builder& b) {
        const ValueId x = input(b, "x", DType::kF32, {24, 50}), zero = b.scalar(DType::kF32, 0);
        const ValueId padded =
            b.emit(Op::kPad, {x, zero},
                   {{"low", ir::Ints{1, 3}}, {"high", ir::Ints{2, 5}}, {"mode", std::string("constant")}});
        b.graph().output("y", b.gather(padded, input(b, "i", DType::kI64, {90}), 1));
      },
      0, 58);
}

TEST(Gathers, OfPositionsThatLoopsShare) {
  for (const int threads : {1, 2}) {
    Batch batch(test_target(threads));
    add_gathers(batch);
    batch.run();
  }
}

const schedule::CpuStitchDesc& only_kernel(const schedule::ScheduledGroup& group) {
  return *std::get<std::shared_ptr<const schedule::CpuStitchDesc>>(group.kernels[0].desc.body);
}

// Positions and weights of 64 channels are computed once for all of them, whatever the number of threads.
TEST(Gathers, ComputePositionsOnceForAllChannels) {
  for (const int threads : {1, 2}) {
    ir::Graph graph;
    Builder b(graph);
    const ValueId x = input(b, "x", DType::kF32, {2, 64, 300}), at = input(b, "p", DType::kF32, {2, 2000});
    graph.output("y", sampled(b, x, at, 2));
    const auto group = schedule::schedule(graph, whole_graph(graph), test_target(threads));
    ASSERT_EQ(group.kernels.size(), 1u);
    const schedule::CpuStitchDesc& kernel = only_kernel(group);
    ASSERT_EQ(kernel.stages.size(), 2u);
    EXPECT_EQ(kernel.stages[0].loops.size(), 1u);
    EXPECT_EQ(kernel.stages[1].loops.size(), 2u);
    EXPECT_GE(kernel.extent(kernel.stages[1].loops[0]), 16);
    EXPECT_EQ(kernel.stages[0].pieces[0].stores.size(), 4u);  // two positions, two weights
    EXPECT_GE(kernel.iterations(), threads);
  }
}

}  // namespace
}  // namespace heddle::testing
