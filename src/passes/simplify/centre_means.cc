#include "passes/simplify/centre_means.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/builder.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

using ir::Graph;
using ir::Rewriter;

// A mean of x over `dims` whose squared deviations are summed over the same elements.
struct Mean {
  ValueId x, sum;
  Ints dims;
  double count;
};

bool is_sum(const Node& node) {
  return node.op == Op::kReduce && node.attrs.text("kind") == "sum";
}

Ints kept_dims(const Graph& graph, const Mean& mean) {
  Ints kept;
  for (int64_t d = 0; d < static_cast<int64_t>(graph.shape(mean.x).size()); ++d) {
    if (std::find(mean.dims.begin(), mean.dims.end(), d) == mean.dims.end()) kept.push_back(d);
  }
  return kept;
}

std::optional<double> constant_of(const Graph& graph, ValueId v) {
  while (graph.producer(v).op == Op::kBroadcast || graph.producer(v).op == Op::kReshape) {
    v = graph.producer(v).inputs[0];
  }
  const Tensor* value = graph.constant_of(v);
  if (value == nullptr || element_count(value->shape()) != 1) return std::nullopt;
  if (value->dtype() == DType::kF32) return value->values<float>()[0];
  if (value->dtype() == DType::kF64) return value->values<double>()[0];
  return std::nullopt;
}

// The sum that `v` divides by `count`.
std::optional<ValueId> summed(const Graph& graph, ValueId v, double count) {
  constexpr double kExact = 1e-6;
  const Node& node = graph.producer(v);
  if (node.op != Op::kDiv && node.op != Op::kMul) return std::nullopt;
  const auto factor = constant_of(graph, node.inputs[1]);
  if (!factor || std::abs((node.op == Op::kDiv ? *factor / count : *factor * count) - 1) > kExact) return std::nullopt;
  ValueId sum = node.inputs[0];
  while (graph.producer(sum).op == Op::kReshape) sum = graph.producer(sum).inputs[0];
  return is_sum(graph.producer(sum)) ? std::optional(sum) : std::nullopt;
}

// The dimensions along which `wide` varies, if it broadcasts `small` without reordering dimensions.
std::optional<Ints> varying_dims(const Graph& graph, ValueId wide, ValueId& small) {
  const Node& node = graph.producer(wide);
  if (node.op != Op::kBroadcast) return std::nullopt;
  small = node.inputs[0];
  const Shape& shape = graph.shape(small);
  Ints varying;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) varying.push_back(node.attrs.ints("dims")[d]);
  }
  const auto stripped = [&](ValueId v) {
    Shape s = graph.shape(v);
    std::erase(s, 1);
    return s;
  };
  while (graph.producer(small).op == Op::kReshape && stripped(graph.producer(small).inputs[0]) == stripped(small)) {
    small = graph.producer(small).inputs[0];
  }
  return std::is_sorted(varying.begin(), varying.end()) ? std::optional(varying) : std::nullopt;
}

// The mean whose squared deviations `node` sums.
std::optional<std::pair<ValueId, Mean>> mean_of_squares(const Graph& graph, const Node& node) {
  if (!is_sum(node)) return std::nullopt;
  const Node& square = graph.producer(node.inputs[0]);
  if (square.op != Op::kMul || square.inputs[0] != square.inputs[1]) return std::nullopt;
  const Node& centred = graph.producer(square.inputs[0]);
  const DType dtype = graph.dtype(square.inputs[0]);
  if (centred.op != Op::kSub || (dtype != DType::kF32 && dtype != DType::kF64)) return std::nullopt;
  Mean mean{centred.inputs[0], 0, node.attrs.ints("dims"), 1};
  const Shape& shape = graph.shape(mean.x);
  for (const int64_t d : mean.dims) mean.count *= static_cast<double>(shape[static_cast<size_t>(d)]);
  ValueId value = 0;
  const auto varying = varying_dims(graph, centred.inputs[1], value);
  const auto sum = varying ? summed(graph, value, mean.count) : std::nullopt;
  if (mean.count < 2 || !sum) return std::nullopt;
  const Node& reduce = graph.producer(*sum);
  if (reduce.inputs[0] != mean.x || reduce.attrs.ints("dims") != mean.dims) return std::nullopt;
  mean.sum = *sum;
  Ints kept = kept_dims(graph, mean);
  std::erase_if(kept, [&](int64_t d) { return shape[static_cast<size_t>(d)] == 1; });
  return kept == *varying ? std::optional(std::pair{value, std::move(mean)}) : std::nullopt;
}

// The parts of the corrected mean in the new graph.
struct Parts {
  ValueId centred, drift, shift;
};

ValueId corrected(Rewriter& r, const Mean& mean, ValueId old, Parts& parts) {
  ir::Builder b(r.target());
  b.set_origins(r.origins());
  const ValueId x = r(std::vector{mean.x})[0], sum = r(std::vector{mean.sum})[0];
  const ValueId first = b.binary(Op::kDiv, sum, mean.count);
  parts.centred = b.sub(x, b.broadcast(first, b.shape(x), kept_dims(r.source(), mean)));
  parts.drift = b.reduce("sum", parts.centred, mean.dims);
  parts.shift = b.binary(Op::kDiv, parts.drift, mean.count);
  return b.reshape(b.add(first, parts.shift), r.source().shape(old));
}

// sum (x - m)^2 = sum (x - m0)^2 - (sum (x - m0))^2 / n, where m0 and m differ only by rounding.
ValueId corrected_squares(Rewriter& r, const Node& node, const Parts& parts) {
  ir::Builder b(r.target());
  b.set_origins(r.origins());
  const ValueId squares = b.reduce("sum", b.mul(parts.centred, parts.centred), node.attrs.ints("dims"));
  return b.binary(Op::kMax, b.sub(squares, b.mul(parts.drift, parts.shift)), 0.0);
}

}  // namespace

ir::Graph centre_means(const ir::Graph& graph, const PassContext&) {
  std::map<ValueId, Mean> means;          // by the mean's value
  std::map<ValueId, ValueId> squares_of;  // sums of squared deviations, and their means
  for (const Node& node : graph.nodes()) {
    auto found = mean_of_squares(graph, node);
    if (!found) continue;
    squares_of[node.outputs[0]] = found->first;
    means.insert(std::move(*found));
  }
  std::map<ValueId, Parts> parts;
  return Rewriter(graph).run([&](Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    const ValueId value = node.outputs.empty() ? 0 : node.outputs[0];
    if (node.outputs.size() != 1) return std::nullopt;
    if (const auto mean = means.find(value); mean != means.end()) {
      return std::vector{corrected(r, mean->second, value, parts[value])};
    }
    if (const auto mean = squares_of.find(value); mean != squares_of.end()) {
      return std::vector{corrected_squares(r, node, parts.at(mean->second))};
    }
    return std::nullopt;
  });
}

}  // namespace heddle::passes
