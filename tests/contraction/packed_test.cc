// Products with weights of few bits, against the float64 product of the dequantised weights.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/builder.h"
#include "ir/reference/array.h"
#include "testing.h"
#include "tile/core/pack.h"

namespace heddle {
namespace {

using ir::Op;
using ir::ValueId;

enum class Third { kNone, kBytes, kFloats, kTable };

struct PackedCase {
  int64_t m, n, k, bits, block;
  Third third = Third::kNone;
  int64_t zero = 0;
  bool rounds = false;
  bool is_lhs = false;  // the weights
  DType scales = DType::kF32;
};

std::string describe_packed(const PackedCase& c) {
  return fmt::format("{}x{}x{}, {} bits, block {}, third {}, zero {}, rounds {}, lhs {}", c.m, c.n, c.k, c.bits,
                     c.block, static_cast<int>(c.third), c.zero, c.rounds, c.is_lhs);
}

Tensor random_words(const PackedCase& c, std::mt19937& random) {
  Tensor result(DType::kU32, {c.n, (c.k + tile::packed_per_word(c.bits) - 1) / tile::packed_per_word(c.bits)});
  for (uint32_t& word : result.mutable_values<uint32_t>()) word = static_cast<uint32_t>(random());
  return result;
}

ir::Graph packed_product(const PackedCase& c, unsigned seed) {
  std::mt19937 random(seed);
  ir::Graph graph;
  ir::Builder b(graph);
  const ValueId a = graph.parameter("a", {DType::kF32, {c.m, c.k}});
  const Shape blocks = {c.n, (c.k + c.block - 1) / c.block};
  const auto range = static_cast<double>(1 << c.bits);
  std::vector<ValueId> operands = {b.constant(random_words(c, random)),
                                   b.constant(testing::random_numbers(c.scales, blocks, 0.5, 1.5, random))};
  if (c.third == Third::kBytes)
    operands.push_back(b.constant(testing::random_numbers(DType::kU8, blocks, 0, range, random)));
  if (c.third == Third::kFloats)
    operands.push_back(b.constant(testing::random_numbers(DType::kF32, blocks, 0, range, random)));
  if (c.third == Third::kTable) {
    operands.push_back(b.constant(testing::random_numbers(DType::kF32, {int64_t{1} << c.bits}, -1, 1, random)));
  }
  const ValueId w =
      b.emit(Op::kDequantize, operands,
             {{"bits", c.bits}, {"block", c.block}, {"k", c.k}, {"zero", c.zero}, {"dtype", DType::kF32}});
  const ValueId y = c.is_lhs ? b.matmul(w, b.transpose(a, {1, 0}), c.rounds ? 8 : 0)
                             : b.matmul(a, b.transpose(w, {1, 0}), c.rounds ? 8 : 0);
  graph.output("y", b.unary(Op::kTanh, b.binary(Op::kMul, y, 0.001)));
  return graph;
}

// Rounding moves each element of A by up to 1 / 254 of the largest of its block.
void check_packed(const PackedCase& c, const testing::RunOptions& options) {
  SCOPED_TRACE(describe_packed(c));
  testing::check_graph(packed_product(c, 3), c.rounds ? 2e-2 : 1e-5, options);
}

TEST(PackedWeights, OfAllBitsAndZeroPointsOnAllInstructionSets) {
  constexpr CpuIsa kAll[] = {CpuIsa::kAvx512, CpuIsa::kAvx2, CpuIsa::kPortable};
  size_t next = 0;
  for (const bool rounds : {false, true}) {
    for (const PackedCase& c : {PackedCase{1, 37, 100, 4, 32, Third::kNone, 8, rounds},
                                PackedCase{3, 67, 133, 4, 16, Third::kBytes, 0, rounds},
                                PackedCase{8, 31, 256, 8, 64, Third::kNone, 128, rounds},
                                PackedCase{2, 17, 130, 8, 32, Third::kBytes, 0, rounds},
                                PackedCase{5, 48, 97, 2, 16, Third::kFloats, 0, rounds},
                                PackedCase{4, 33, 70, 4, 70, Third::kFloats, 0, rounds}}) {
      check_packed(c, {.threads = 2, .isa = kAll[next++ % 2]});
    }
  }
  check_packed({3, 67, 133, 4, 16, Third::kBytes, 0, true}, {.isa = kAll[2]});
}

TEST(PackedWeights, ManyRowsAreMultipliedByWidenedPanels) {
  check_packed({64, 61, 300, 4, 32, Third::kNone, 8}, {.threads = 2});
  check_packed({100, 97, 129, 8, 16, Third::kBytes}, {.isa = CpuIsa::kAvx2});
  check_packed({100, 53, 200, 4, 256, Third::kNone, 3, true}, {.threads = 2});
  check_packed({17, 29, 9001, 4, 64, Third::kBytes}, {});  // a sum of more than 8192 products
}

TEST(PackedWeights, TablesAndNarrowScales) {
  check_packed({1, 40, 128, 4, 64, Third::kTable}, {.isa = CpuIsa::kPortable});
  check_packed({1, 40, 128, 4, 64, Third::kTable}, {.isa = CpuIsa::kAvx2});
  check_packed({20, 40, 128, 2, 64, Third::kTable}, {});
  check_packed({2, 19, 96, 4, 32, Third::kNone, 8, true, false, DType::kF16}, {});
}

TEST(PackedWeights, MayBeTheFirstOperand) {
  check_packed({1, 50, 96, 4, 32, Third::kNone, 8, false, true}, {});
  check_packed({7, 50, 96, 4, 32, Third::kBytes, 0, true, true}, {});
}

// Rounding to three digits is as accurate as f32 for rows of any magnitude. Rows without a regular scale are multiplied
// as floats.
TEST(PackedWeights, RowsOfEveryMagnitude) {
  for (const CpuIsa isa : {CpuIsa::kAvx512, CpuIsa::kAvx2}) {
    for (const int64_t bits : {4, 8}) {
      const PackedCase c{7, 33, 90, bits, 32, Third::kBytes};
      SCOPED_TRACE(describe_packed(c));
      std::mt19937 random(5);
      ir::Graph graph;
      ir::Builder b(graph);
      const ValueId a = graph.parameter("a", {DType::kF32, {c.m, c.k}});
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      const auto sizes = Tensor::of<float>(DType::kF32, {7}, {1, 0, 1e-42f, 1e32f, kInfinity, NAN, 1e-30f});
      const ValueId rows = b.mul(a, b.broadcast(b.constant(sizes), {c.m, c.k}, {0}));
      const Shape blocks = {c.n, 3};
      const ValueId w =
          b.emit(Op::kDequantize,
                 {b.constant(random_words(c, random)),
                  b.constant(testing::random_numbers(DType::kF32, blocks, 0.5, 1.5, random)),
                  b.constant(testing::random_numbers(DType::kU8, blocks, 0, 1 << bits, random))},
                 {{"bits", bits}, {"block", c.block}, {"k", c.k}, {"zero", int64_t{0}}, {"dtype", DType::kF32}});
      const ValueId y = b.matmul(rows, b.transpose(w, {1, 0}));
      // Rows are scaled back before they are compared.
      const auto back = Tensor::of<float>(DType::kF32, {7}, {1e-3f, 1, 1e30f, 1e-35f, 1, 1, 1e27f});
      graph.output("y", b.unary(Op::kTanh, b.mul(y, b.broadcast(b.constant(back), {c.m, c.n}, {0}))));
      testing::check_graph(graph, 1e-5, {.isa = isa});
    }
  }
}

TEST(PackedWeights, OfRandomShapes) {
  std::mt19937 random(static_cast<unsigned>(testing::setting("HEDDLE_TEST_SEED", 11)));
  const auto pick = [&](std::initializer_list<int64_t> values) { return values.begin()[random() % values.size()]; };
  for (int i = 0; i < testing::setting("HEDDLE_TEST_CASES", 5); ++i) {
    PackedCase c{pick({1, 2, 3, 5, 7, 9, 64}), static_cast<int64_t>(1 + random() % 140),
                 static_cast<int64_t>(1 + random() % 700), pick({2, 4, 8}), pick({16, 32, 64, 128, 256})};
    c.third = static_cast<Third>(random() % 3);
    c.zero = static_cast<int64_t>(random() % (1u << c.bits));
    c.rounds = random() % 2 != 0;
    check_packed(c, {.threads = 2, .isa = random() % 2 != 0 ? CpuIsa::kAvx512 : CpuIsa::kAvx2});
  }
}

}  // namespace
}  // namespace heddle
