#include "driver/tune/packed_bench.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "base/divide.h"
#include "ir/builder.h"
#include "tile/core/pack.h"

namespace heddle::driver {
namespace {

// Integers of all values, and scales that keep products at the magnitude of the matrix.
ir::Graph packed_graph(const PackedProblem& p) {
  std::mt19937 random(1);
  ir::Graph graph;
  ir::Builder b(graph);
  const ir::ValueId x = graph.parameter("x", {p.type, {p.m, p.k}});
  Tensor words(DType::kU32, {p.n, ceil_div(p.k, tile::packed_per_word(p.bits))});
  for (uint32_t& word : words.mutable_values<uint32_t>()) word = static_cast<uint32_t>(random());
  const Shape blocks = {p.n, ceil_div(p.k, p.block)};
  Tensor scales(DType::kF32, blocks);
  const double most = 1 / static_cast<double>(int64_t{1} << p.bits) / std::sqrt(static_cast<double>(p.k));
  std::uniform_real_distribution<double> scale(most / 2, most);
  for (float& value : scales.mutable_values<float>()) value = static_cast<float>(scale(random));
  std::vector<ir::ValueId> operands = {b.constant(std::move(words)), b.constant(std::move(scales))};
  if (p.zeros) {
    Tensor zeros(DType::kU8, blocks);
    for (uint8_t& zero : zeros.mutable_values<uint8_t>()) zero = static_cast<uint8_t>(random() % (1u << p.bits));
    operands.push_back(b.constant(std::move(zeros)));
  }
  const ir::ValueId w = b.emit(
      ir::Op::kDequantize, std::move(operands),
      {{"bits", p.bits}, {"block", p.block}, {"k", p.k}, {"zero", int64_t{1} << (p.bits - 1)}, {"dtype", p.type}});
  graph.output("y", b.matmul(x, b.transpose(w, {1, 0})));
  return graph;
}

// The largest error of some results, over the error bound of the type.
double packed_error(const PackedProblem& p, const GroupProblem& problem, const tune::GroupTrial& trial) {
  constexpr int64_t kPlaces = 499;
  const ir::Graph& graph = problem.graph;
  const std::vector<double> x = trial.values(graph.inputs()[0].value), got = trial.values(problem.result());
  const auto dequantize = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                                       [](const ir::Node& node) { return node.op == ir::Op::kDequantize; });
  const auto constant = [&](size_t i) { return graph.constant_of(dequantize->inputs[i]); };
  const auto words = constant(0)->values<uint32_t>();
  const auto scales = constant(1)->values<float>();
  const int64_t per_word = tile::packed_per_word(p.bits), pitch = ceil_div(p.k, per_word),
                blocks = ceil_div(p.k, p.block);
  const double unit = p.type == DType::kF16 ? 0x1p-11 : p.type == DType::kBF16 ? 0x1p-8 : 0x1p-20;
  double error = 0;
  for (const int64_t place : sampled(p.m * p.n, kPlaces)) {
    const int64_t row = place / p.n, column = place % p.n;
    double sum = 0, size = 0;
    for (int64_t i = 0; i < p.k; ++i) {
      const uint32_t word = words[static_cast<size_t>(column * pitch + i / per_word)];
      const auto q = static_cast<int64_t>(word >> tile::packed_shift(i % per_word, p.bits) & ((1u << p.bits) - 1));
      const auto at = static_cast<size_t>(column * blocks + i / p.block);
      const int64_t zero = p.zeros ? constant(2)->values<uint8_t>()[at] : int64_t{1} << (p.bits - 1);
      const double term = x[static_cast<size_t>(row * p.k + i)] * static_cast<double>(q - zero) * scales[at];
      sum += term, size += std::fabs(term);
    }
    error = larger_error(error, got[static_cast<size_t>(place)], sum, 2 * unit * std::max(size, 0.01));
  }
  return error;
}

}  // namespace

GroupProblem packed_problem(const PackedProblem& problem) {
  GroupProblem group = group_problem(packed_graph(problem), ir::GroupKind::kContraction);
  group.operations =
      2 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
  group.error = [problem](const GroupProblem& whole, const tune::GroupTrial& trial) {
    return packed_error(problem, whole, trial);
  };
  return group;
}

}  // namespace heddle::driver
