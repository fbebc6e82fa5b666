// Scatters and selections that only a GPU's mapping has: columns that several threads share or no block holds, more
// updates than a block keeps, elements that are moved together. Sums of few columns.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "harness.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

void select(Builder& b, DType dtype, const Shape& shape, int64_t dim, int64_t k, bool largest) {
  const auto both = b.emit_all(Op::kTopK, {input(b, "x", dtype, shape)},
                               {{"k", k}, {"dim", dim}, {"largest", int64_t{largest}}, {"sorted", int64_t{1}}});
  b.graph().output("values", both[0]);
  b.graph().output("at", both[1]);
}

// Columns longer than shared memory holds, of which a few are wanted, as many as fit there, more, and all; bytes and
// integers are nearly all equal.
TEST(CudaStandalone, LongColumns) {
  Batch batch;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kU8, DType::kI64}) {
    for (const int64_t n : {2048, 2049, 9000}) {
      for (const int64_t k : {int64_t{1}, int64_t{7}, int64_t{2048}, int64_t{2049}, n}) {
        if (k > n || (k == n && n == 2048)) continue;
        const bool largest = (k + n) % 2 == 0 || k == 7;
        batch.add(fmt::format("{} {} of {}", to_string(dtype), k, n), [&](Builder& b) {
          select(b, dtype, {2, n}, 1, k, largest);
        });
      }
    }
  }
  batch.add("columns beside each other", [](Builder& b) { select(b, DType::kF32, {3000, 3}, 0, 40, false); });
  batch.add("most of them", [](Builder& b) { select(b, DType::kBF16, {5001, 2}, 0, 5000, true); });
  batch.run();
}

TEST(CudaStandalone, RowsOfEveryLength) {
  Batch batch;
  for (const int64_t n : {1, 2, 3, 31, 32, 33, 64, 65, 100, 512, 513, 1000, 2047}) {
    for (const int64_t k : {int64_t{1}, (n + 1) / 2, n}) {
      batch.add(fmt::format("{} of {}", k, n), [&](Builder& b) { select(b, DType::kF32, {3, n}, 1, k, n % 2 == 0); });
    }
  }
  batch.run();
}

// From a machine that gives every row a thread of its own to one where a thread has whole columns.
TEST(CudaStandalone, ManyUpdates) {
  for (const int sms : {1, 132}) {
    Target target = test_target();
    target.cuda.sms = sms;
    Batch batch(target);
    for (const std::string reduction : {"none", "add", "max"}) {
      for (const auto& [rows, inner] :
           std::vector<std::pair<int64_t, int64_t>>{{40, 1}, {40, 8}, {333, 24}, {3, 700}}) {
        for (const DType dtype : {DType::kF32, DType::kF16}) {
          const int64_t updates = 1300 / inner + 3;
          batch.add(
              fmt::format("tuples {} {} {} {}", reduction, rows, inner, to_string(dtype)),
              [&](Builder& b) {
                const ValueId x = input(b, "x", dtype, {rows, inner}), at = input(b, "at", DType::kI32, {updates, 1});
                const ValueId u = input(b, "u", dtype, {updates, inner});
                b.graph().output("y", b.emit(Op::kScatterNd, {x, at, u}, {{"reduction", reduction}}));
              },
              dtype == DType::kF16 ? 0.2 : 0, rows);
          batch.add(
              fmt::format("elements {} {} {} {}", reduction, rows, inner, to_string(dtype)),
              [&](Builder& b) {
                const ValueId x = input(b, "x", dtype, {rows, inner});
                const ValueId at = input(b, "at", DType::kI64, {updates, inner});
                const ValueId u = input(b, "u", dtype, {updates, inner});
                b.graph().output(
                    "y", b.emit(Op::kScatterElements, {x, at, u}, {{"dim", int64_t{0}}, {"reduction", reduction}}));
              },
              dtype == DType::kF16 ? 0.2 : 0, rows);
        }
      }
    }
    batch.run();
  }
}

// Every dimension of five, with indices that are smaller than the data here and there.
TEST(CudaStandalone, IndicesWithinTheData) {
  Batch batch;
  const Shape data = {3, 4, 2, 5, 6};
  for (const Shape& indices : std::vector<Shape>{{3, 4, 2, 5, 6}, {2, 4, 2, 5, 6}, {3, 4, 1, 5, 6}, {3, 2, 2, 5, 3}}) {
    for (int64_t dim = 0; dim < 5; ++dim) {
      batch.add(
          fmt::format("{} {}", heddle::to_string(indices), dim),
          [&](Builder& b) {
            const ValueId x = input(b, "x", DType::kF32, data), at = input(b, "at", DType::kI64, indices);
            b.graph().output("y", b.emit(Op::kScatterElements, {x, at, input(b, "u", DType::kF32, indices)},
                                         {{"dim", dim}, {"reduction", std::string("add")}}));
          },
          0, 2);
    }
  }
  batch.run();
}

void write_lines(Builder& b, DType dtype) {
  const ValueId x = input(b, "x", dtype, {2, 50, 16}), at = input(b, "at", DType::kI64, {2, 1, 2});
  const ValueId lines = input(b, "u", dtype, {2, 1, 16});
  b.graph().output("y", b.emit(Op::kScatterNd, {x, at, lines}, {{"reduction", std::string("none")}}));
}

// A cache that a step of decoding writes a line to: moved 16 bytes at a time.
TEST(CudaStandalone, LinesOfACache) {
  ir::Graph graph;
  Builder b(graph);
  write_lines(b, DType::kF16);
  const auto group = schedule::schedule(graph, whole_graph(graph), test_target());
  ASSERT_EQ(group.kernels.size(), 1u);
  const codegen::KernelSource source =
      codegen::emit(schedule::plan_kernel(group.kernels[0], test_target()), test_target());
  EXPECT_NE(source.text.find("Neighbours<uint32_t, 4>"), std::string::npos) << source.text;
  Batch batch;
  for (const DType dtype : {DType::kF16, DType::kI8}) {
    batch.add(
        std::string(to_string(dtype)), [&](Builder& each) { write_lines(each, dtype); }, 0, 2);
  }
  batch.run();
}

// Two caches that get a computed row each, in place, beside something else: one launch. Rows that are made of old ones
// of their own cache, or that neighbours have in different places, are written by kernels behind it.
TEST(CudaStandalone, RowsOfCachesAreRootsOfOneLaunch) {
  enum class Rows : uint8_t { kComputed, kOfTheOld, kOfEachElement };
  for (const Rows rows : {Rows::kComputed, Rows::kOfTheOld, Rows::kOfEachElement}) {
    ir::Graph graph;
    Builder b(graph);
    const ValueId at = input(b, "at", DType::kI64, {2, 1, 1, rows == Rows::kOfEachElement ? 8 : 1});
    for (const char* name : {"k", "v"}) {
      const ValueId cache = input(b, std::string("cache_") + name, DType::kF16, {2, 3, 7, 8});
      ValueId row = b.emit(Op::kExp, {input(b, std::string("x_") + name, DType::kF16, {2, 3, 1, 8})});
      if (rows == Rows::kOfTheOld) row = b.emit(Op::kAdd, {row, b.slice_dim(cache, 2, 3, 4)});
      const ir::Attrs attrs = {{"dim", int64_t{2}}, {"reduction", std::string("none")}, {"in_place", int64_t{1}}};
      b.graph().output(name, b.emit(Op::kScatterElements, {cache, at, row}, attrs));
    }
    b.graph().output("o", b.emit(Op::kExp, {input(b, "q", DType::kF16, {2, 9, 1, 8})}));
    const auto group = schedule::schedule(graph, whole_graph(graph), Target::cuda_h200());
    EXPECT_EQ(group.kernels.size(), rows == Rows::kComputed ? 1U : 3U) << static_cast<int>(rows);
  }
}

// As a network of split attention sums its parts before it takes the mean of each channel: few columns, and of each
// many sums and one mean, which is the kernel's own result.
TEST(CudaStitch, MeansOfSumsOfFewColumns) {
  Batch batch;
  for (int64_t parts : {2, 3}) {
    for (int64_t side : {4, 9}) {
      batch.add(std::to_string(parts) + " parts " + std::to_string(side), [&](Builder& b) {
        const auto x = input(b, "x", DType::kF16, {5, side, side, parts, 24});
        const auto sums = b.cast(b.reduce("sum", x, {3}, false), DType::kF32);
        b.graph().output("y", b.mul(b.reduce("sum", sums, {1, 2}, false), input(b, "s", DType::kF32, {5, 24})));
      });
    }
  }
  batch.run();
}

}  // namespace
}  // namespace heddle::testing
