// Products with weights of few bits on the emulated GPU, against the float64 product of the dequantised weights.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "ir/builder.h"
#include "ir/reference/array.h"
#include "passes/pass.h"
#include "target/target.h"
#include "testing.h"
#include "tests/contraction/testing.h"
#include "tile/core/pack.h"

namespace heddle::testing {
namespace {

using ir::Op;
using ir::ValueId;

enum class Third { kNone, kBytes, kTable };

struct PackedForm {
  int64_t m, n, k, bits, block;
  DType dtype = DType::kF16;
  Third third = Third::kNone;
  int64_t zero = 8;
  double scale = 0.01;    // the largest one
  bool is_lhs = false;    // the weights
  bool has_bias = false;  // and an activation, with a second result
  DType scales = DType::kF16;
};

std::string name_of(const PackedForm& c) {
  return fmt::format("{} {}x{}x{}, {} bits, block {}, third {}, lhs {}", to_string(c.dtype), c.m, c.n, c.k, c.bits,
                     c.block, static_cast<int>(c.third), c.is_lhs);
}

ir::Graph packed_graph(const PackedForm& c, unsigned seed) {
  std::mt19937 random(seed);
  ir::Graph graph;
  ir::Builder b(graph);
  const ValueId a = graph.parameter("a", {c.dtype, {c.m, c.k}});
  const int64_t per_word = tile::packed_per_word(c.bits);
  Tensor words(DType::kU32, {c.n, (c.k + per_word - 1) / per_word});
  for (uint32_t& word : words.mutable_values<uint32_t>()) word = static_cast<uint32_t>(random());
  const Shape blocks = {c.n, (c.k + c.block - 1) / c.block};
  std::vector<ValueId> operands = {b.constant(std::move(words)),
                                   b.constant(random_numbers(c.scales, blocks, -c.scale, c.scale, random))};
  const auto range = static_cast<double>(1 << c.bits);
  if (c.third == Third::kBytes) operands.push_back(b.constant(random_numbers(DType::kU8, blocks, 0, range, random)));
  if (c.third == Third::kTable) {
    operands.push_back(b.constant(random_numbers(DType::kF32, {int64_t{1} << c.bits}, -1, 1, random)));
  }
  const ValueId w = b.emit(Op::kDequantize, operands,
                           {{"bits", c.bits}, {"block", c.block}, {"k", c.k}, {"zero", c.zero}, {"dtype", c.dtype}});
  ValueId y = c.is_lhs ? b.matmul(w, b.transpose(a, {1, 0})) : b.matmul(a, b.transpose(w, {1, 0}));
  if (c.has_bias) {
    y = b.add(y, b.constant(random_numbers(c.dtype, {b.shape(y).back()}, -1, 1, random)));
    graph.output("z", y);
    y = b.unary(Op::kTanh, y);
  }
  graph.output("y", y);
  return graph;
}

void add_packed(CudaBatch& batch, const PackedForm& c, CudaBatch::Options options = {}) {
  options.tolerance = c.dtype == DType::kF16 ? 3e-3 : 2e-2;
  options.family = "packed";
  batch.add_graph(name_of(c), packed_graph(c, 3), options);
}

const std::vector<PackedForm> kPackedForms = {
    {1, 37, 100, 4, 32},
    {3, 67, 133, 4, 16, DType::kF16, Third::kBytes},
    {8, 31, 256, 8, 64, DType::kF16, Third::kNone, 128},
    {2, 17, 130, 8, 32, DType::kF16, Third::kBytes},
    {5, 48, 97, 2, 16, DType::kF16, Third::kBytes},
    {7, 40, 200, 2, 256, DType::kF16, Third::kNone, 1},
    {1, 96, 2048, 4, 128, DType::kF16, Third::kNone, 8, 1e-7, false, false, DType::kF32},
    {4, 33, 70, 4, 70, DType::kF16, Third::kBytes, 0, 100},
    {1, 40, 128, 4, 64, DType::kF16, Third::kTable},
    {20, 40, 128, 2, 64, DType::kF16, Third::kTable},
    {33, 61, 304, 4, 32, DType::kF16, Third::kNone, 8, 0.01, false, true},
    {70, 53, 200, 4, 32, DType::kF16, Third::kBytes},
    {130, 16, 64, 8, 16},
    {6, 50, 96, 4, 32, DType::kF16, Third::kNone, 8, 0.01, true},
};

TEST(CudaPacked, OfAllBitsAndZeroPoints) {
  CudaBatch batch;
  for (PackedForm c : kPackedForms) {
    add_packed(batch, c);
    c.dtype = DType::kBF16;
    add_packed(batch, c);
  }
  for (const PackedForm& c : {kPackedForms[0], kPackedForms[5], kPackedForms[11]}) add_packed(batch, c, {.sm = 80});
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

TEST(CudaPacked, OfAllConfigurations) {
  CudaBatch batch;
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed());
  const auto pick = [&](std::initializer_list<int64_t> values) { return values.begin()[random() % values.size()]; };
  for (unsigned i = 0; i < 24; ++i) {
    PackedForm c{pick({1, 2, 3, 5, 8, 9, 16, 17, 40, 64, 90}), static_cast<int64_t>(1 + random() % 140),
                 static_cast<int64_t>(1 + random() % 1500), pick({2, 4, 8}), pick({16, 32, 64, 128, 256})};
    c.dtype = random() % 3 == 0 ? DType::kBF16 : DType::kF16;
    c.third = random() % 2 == 0 ? Third::kNone : Third::kBytes;
    c.zero = static_cast<int64_t>(random() % (1u << c.bits));
    c.has_bias = random() % 2 == 0;
    c.scale = 1.0 / static_cast<double>(1 << c.bits) / std::sqrt(static_cast<double>(c.k));
    add_packed(batch, c, {.split = i % 6 == 5 && c.k > 300, .skip = static_cast<unsigned>(random() % 97)});
  }
  batch.run();
  batch.compile();
}

// Pairs of columns are combined in the epilogue, also if k is split.
TEST(CudaPacked, Gated) {
  CudaBatch batch;
  for (const auto& [m, k] : {std::pair{1, 256}, {5, 96}, {40, 128}, {3, 1024}}) {
    ir::Graph graph;
    ir::Builder b(graph);
    std::mt19937 random(9);
    const ValueId x = graph.parameter("a", {DType::kF16, {m, k}});
    const auto half = [&] {
      Tensor words(DType::kU32, {56, k / 8});
      for (uint32_t& word : words.mutable_values<uint32_t>()) word = static_cast<uint32_t>(random());
      const ValueId w =
          b.emit(Op::kDequantize,
                 {b.constant(std::move(words)), b.constant(random_numbers(DType::kF16, {56, k / 32}, 0, 0.01, random))},
                 {{"bits", int64_t{4}},
                  {"block", int64_t{32}},
                  {"k", int64_t{k}},
                  {"zero", int64_t{8}},
                  {"dtype", DType::kF16}});
      return b.matmul(x, b.transpose(w, {1, 0}));
    };
    const ValueId gate = half(), up = half();
    graph.output("y", b.mul(b.unary(Op::kTanh, gate), up));
    const std::vector<std::string> names = {"canonicalize", "gate_dots"};
    batch.add_graph(fmt::format("{} rows", m), passes::run_passes(graph, names, {Target::cuda_h200(1)}),
                    {.tolerance = 3e-3, .family = "packed", .split = k == 1024});
  }
  EXPECT_EQ(batch.decisions().size(), 4u);
  batch.run();
  batch.compile();
}

// Rows of f32 are multiplied without tensor cores.
TEST(CudaPacked, OfFloats) {
  CudaBatch batch;
  for (PackedForm c : kPackedForms) {
    if (c.m > 8 || c.is_lhs) continue;
    c.dtype = DType::kF32;
    batch.add_graph(name_of(c), packed_graph(c, 3), {.tolerance = 1e-5, .family = "skinny"});
  }
  batch.add_graph("split", packed_graph({2, 40, 3000, 4, 32, DType::kF32}, 3),
                  {.tolerance = 1e-5, .family = "skinny", .split = true});
  batch.add_graph("first operand", packed_graph({3, 40, 300, 4, 12, DType::kF32, Third::kNone, 8, 0.1, true}, 3),
                  {.tolerance = 1e-5});
  batch.run();
  batch.compile();
}

}  // namespace
}  // namespace heddle::testing
