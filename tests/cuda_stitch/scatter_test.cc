// Scatters with many updates on a GPU: those that are sorted and those with atomic operations, from whole numbers of
// vectors to single columns, with rows that have all updates.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "harness.h"
#include "schedule/kernel_plan.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

// A machine on which looking at updates that another thread may own takes longer than any other form of a scatter.
Target machine_of_many_updates() {
  Target target = test_target();
  target.cuda.sms = 2;
  target.cuda.model.scatter.look_cycles = 1e9;
  return target;
}

enum class Begin : uint8_t { kData, kValue };
enum class At : uint8_t { kAnywhere, kOneRow };

struct Slices {
  int64_t rows, inner, updates;
  DType dtype = DType::kF32;
  std::string reduction = "add";
  bool unordered = false;
  Begin begin = Begin::kValue;
  At at = At::kAnywhere;
  DType index = DType::kI64;
};

std::string name_of(const Slices& s) {
  return fmt::format("{} [{},{}] {} updates {}{}{}{} {}", to_string(s.dtype), s.rows, s.inner, s.updates, s.reduction,
                     s.unordered ? " unordered" : "", s.begin == Begin::kData ? " of data" : "",
                     s.at == At::kOneRow ? " of one row" : "", to_string(s.index));
}

ir::Attrs attrs_of(const std::string& reduction, bool unordered) {
  ir::Attrs attrs = {{"reduction", reduction}};
  if (unordered) attrs.set("unordered", int64_t{1});
  return attrs;
}

void build(Builder& b, const Slices& s) {
  const Shape data = {s.rows, s.inner};
  const ValueId x = s.begin == Begin::kData ? input(b, "x", s.dtype, data) : b.full(s.dtype, data, 2);
  const ValueId at = s.at == At::kOneRow ? b.full(s.index, {s.updates, 1}, static_cast<double>(s.rows / 2))
                                         : input(b, "at", s.index, {s.updates, 1});
  const ValueId u = input(b, "u", s.dtype, {s.updates, s.inner});
  b.graph().output("y", b.emit(Op::kScatterNd, {x, at, u}, attrs_of(s.reduction, s.unordered)));
}

void add(Batch& batch, const Slices& s, double tolerance = 0) {
  batch.add(
      name_of(s), [&](Builder& b) { build(b, s); }, tolerance, s.rows);
}

// Sums of many terms of either sign: relative to 1.
constexpr double kOfSums = 2e-4;

TEST(CudaScatter, WidthsOfRows) {
  Batch batch(machine_of_many_updates());
  for (const bool unordered : {false, true}) {
    for (const int64_t inner : {1, 3, 5, 64, 768, 769}) {
      for (const At at : {At::kAnywhere, At::kOneRow}) {
        Slices s{37, inner, inner > 100 ? 150 : 700};
        s.unordered = unordered, s.at = at;
        add(batch, s, kOfSums);
      }
    }
  }
  batch.run();
}

// Lists of one entry to several chunks, whose rows begin and end anywhere in the runs of threads.
TEST(CudaScatter, NumbersOfUpdates) {
  Batch batch(machine_of_many_updates());
  for (const bool unordered : {false, true}) {
    for (const int64_t updates : {1, 7, 8, 9, 33, 4096, 4097, 9000}) {
      for (const int64_t rows : {int64_t{1}, int64_t{3}, int64_t{200}, 2 * updates}) {
        Slices s{rows, 2, updates};
        s.unordered = unordered, s.begin = rows == 3 ? Begin::kData : Begin::kValue;
        add(batch, s, kOfSums);
      }
    }
  }
  batch.run();
}

TEST(CudaScatter, TypesAndReductions) {
  Batch batch(machine_of_many_updates());
  for (const std::string reduction : {"add", "max", "min", "none"}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8, DType::kU8, DType::kI32,
                              DType::kI64, DType::kU64}) {
      Slices s{21, dtype == DType::kF64 ? 6 : 12, 300, dtype, reduction};
      s.begin = is_float(dtype) ? Begin::kData : Begin::kValue;
      s.index = dtype == DType::kI8 ? DType::kI32 : DType::kI64;
      // Each of some 15 sums of the reference is rounded to the type.
      add(batch, s, dtype == DType::kF16 ? 0.02 : dtype == DType::kBF16 ? 0.2 : 0);
    }
  }
  add(batch, {60, 4, 150, DType::kF32, "mul"}, 1e-3);
  batch.run();
}

// Along every dimension of updates that are smaller than the data, that share indices, and some of which are dropped.
TEST(CudaScatter, Elements) {
  Batch batch(machine_of_many_updates());
  const Shape data = {5, 4, 3, 6};
  for (const bool unordered : {false, true}) {
    for (const Shape& updates : std::vector<Shape>{{5, 4, 3, 6}, {4, 4, 3, 6}, {5, 4, 2, 6}, {3, 2, 3, 4}}) {
      for (int64_t dim = 0; dim < 4; ++dim) {
        for (const std::string kind : {"whole", "shared", "dropped"}) {
          Shape indices = updates;
          if (kind == "shared") indices[static_cast<size_t>((dim + 1) % 4)] = 1;
          batch.add(
              fmt::format("{} {} along {}{}", kind, heddle::to_string(updates), dim, unordered ? " unordered" : ""),
              [&](Builder& b) {
                const ValueId x = input(b, "x", DType::kF32, data), at = input(b, "at", DType::kI64, indices);
                ir::Attrs attrs = attrs_of("add", unordered);
                attrs.set("dim", dim);
                if (kind == "dropped") attrs.set("drop", int64_t{1});
                b.graph().output("y",
                                 b.emit(Op::kScatterElements, {x, at, input(b, "u", DType::kF32, updates)}, attrs));
              },
              1e-5, kind == "dropped" ? 9 : 3);
        }
      }
    }
  }
  batch.add(
      "many of few columns",
      [&](Builder& b) {
        const ValueId x = input(b, "x", DType::kF32, {7, 3}), at = input(b, "at", DType::kI64, {3000, 3});
        ir::Attrs attrs = attrs_of("add", false);
        attrs.set("dim", int64_t{0});
        b.graph().output("y", b.emit(Op::kScatterElements, {x, at, input(b, "u", DType::kF32, {3000, 3})}, attrs));
      },
      kOfSums, 7);
  batch.run();
}

const schedule::ScheduledKernel only_kernel(const ir::Graph& graph, const Target& target) {
  const auto group = schedule::schedule(graph, whole_graph(graph), target);
  EXPECT_EQ(group.kernels.size(), 1u);
  return group.kernels.at(0);
}

struct Planned {
  std::string family;
  double predicted_us;
  size_t operands, launches;
};
Planned planned(const Slices& s) {
  ir::Graph graph;
  Builder b(graph);
  build(b, s);
  const Target target = Target::cuda_h200();
  const schedule::ScheduledKernel kernel = only_kernel(graph, target);
  return {std::string(schedule::family_of(kernel.config)), kernel.config.predicted_us, kernel.desc.operands.size(),
          schedule::plan_kernel(kernel, target).launches.size()};
}

Slices embedding(int64_t rows, int64_t inner, int64_t updates, bool unordered) {
  Slices s{rows, inner, updates};
  s.unordered = unordered;
  return s;
}

// The gradient of an embedding is a few times the time in which its bytes are moved, in either order, and no kernel
// makes the zeros to which it is added.
TEST(CudaScatter, GradientsOfEmbeddingsHaveNoCliff) {
  for (const auto& [rows, inner, updates] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {2, 768, 4096}, {30522, 768, 4096}, {32000, 2048, 4096}, {100000, 64, 102400}, {169, 24, 2401}}) {
    const Planned atomic = planned(embedding(rows, inner, updates, true));
    EXPECT_EQ(atomic.family, "scatter_atomic") << rows;
    EXPECT_EQ(atomic.operands, 3u);
    EXPECT_EQ(atomic.launches, 2u);
    const Planned sorted = planned(embedding(rows, inner, updates, false));
    EXPECT_EQ(sorted.family, "scatter_sorted") << rows;
    EXPECT_EQ(sorted.operands, 3u);
    EXPECT_LT(sorted.predicted_us, 5 * atomic.predicted_us) << rows;
  }
}

// Few updates take one launch. Integers have the same sums in any order.
TEST(CudaScatter, FormsByNumberOfUpdatesAndType) {
  const Planned few = planned(embedding(1000, 64, 4, false));
  EXPECT_EQ(few.family, "scatter_nd");
  EXPECT_EQ(few.launches, 1u);
  Slices integers = embedding(100000, 64, 102400, false);
  integers.dtype = DType::kI32;
  EXPECT_EQ(planned(integers).family, "scatter_atomic");
  integers.dtype = DType::kI8;
  EXPECT_EQ(planned(integers).family, "scatter_sorted");
}

}  // namespace
}  // namespace heddle::testing
