#include "schedule/product/cuda/packed_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/divide.h"
#include "ir/reference/scalar.h"
#include "schedule/product/cuda/contraction.h"
#include "schedule/product/packing.h"

namespace heddle::schedule {
namespace {

// The exponent of the power of two that scales are multiplied by. It keeps products of the largest scale with integers,
// and with the numbers of a table, from being infinite or subnormal in f16.
int scale_exponent(const Tensor& scales, const Tensor* table) {
  constexpr int kLargest = 7, kMost = 100;
  const double most =
      ir::largest_magnitude(scales) * (table != nullptr ? std::max(1.0, ir::largest_magnitude(*table)) : 1.0);
  return most > 0 ? std::clamp(kLargest - 1 - std::ilogb(most), -kMost, kMost) : 0;
}

// True if zero points are integers that the kernel subtracts exactly.
bool are_exact_zeros(const Tensor& zeros, int64_t most) {
  if (zeros.dtype() == DType::kU8) return ir::largest_magnitude(zeros) <= static_cast<double>(most);
  for (int64_t i = 0; i < zeros.size(); ++i) {
    const double zero = ir::real_at(zeros, i);
    if (zero < 0 || zero > static_cast<double>(most) || zero != std::floor(zero)) return false;
  }
  return true;
}

// B as constant weights of few bits; nullopt if it has another form. Rows of the weights are columns of B.
std::optional<PackedWeights> packed_weights(const ContractionBuilder& builder, const DotProblem& p, DType multiply) {
  if (!p.b_affine || p.b_view.offset != 0 || p.n.size() > 1 || p.k.size() != 1) return std::nullopt;
  const ir::Graph& graph = builder.graph();
  const ir::Node* node = &graph.producer(p.b_view.value);
  const Shape& shape = graph.shape(node->outputs[0]);
  const bool whole = DotProblem::count(p.n) == shape[0] && DotProblem::count(p.k) == shape[1] && p.k[0].b == 1 &&
                     (p.n.empty() || p.n[0].b == shape[1]);
  const bool shared = std::all_of(p.batch.begin(), p.batch.end(), [](const DotDim& d) { return d.b == 0; });
  const auto is_constant = [&](ir::ValueId v) { return graph.constant_of(v) != nullptr; };
  const bool half = multiply == DType::kF16;
  const bool real = multiply == DType::kF32;
  const bool same = half || real || multiply == DType::kBF16;
  if (!whole || !shared || !same || graph.dtype(node->outputs[0]) != multiply ||
      !std::all_of(node->inputs.begin(), node->inputs.end(), is_constant)) {
    return std::nullopt;
  }
  PackedWeights w;
  w.bits = node->attrs.integer("bits"), w.block = node->attrs.integer("block"), w.zero = node->attrs.integer("zero");
  const int64_t quarter = tile::kFragmentDepth / 4, depth = real ? shape[1] : round_up(shape[1], tile::kFragmentDepth);
  if (w.block < shape[1] && w.block % (real ? tile::packed_per_word(w.bits) : quarter) != 0) return std::nullopt;
  w.blocks = w.block >= shape[1] ? 1 : ceil_div(depth, w.block);
  const Tensor* third = node->inputs.size() == 3 ? graph.constant_of(node->inputs[2]) : nullptr;
  w.is_table = third != nullptr && third->shape().size() == 1;
  if (w.is_table && w.bits > 4) return std::nullopt;
  if (real) return w;
  const int64_t most = half || w.bits == 8 ? 255 : 127;
  if (third == nullptr ? w.zero < 0 || w.zero > most : !w.is_table && !are_exact_zeros(*third, most)) {
    return std::nullopt;
  }
  const Tensor& scales = *graph.constant_of(node->inputs[1]);
  if (half) w.exponent = scale_exponent(scales, w.is_table ? third : nullptr);
  return w;
}

}  // namespace

std::optional<size_t> packed_side(const ContractionBuilder& builder) {
  ContractionBuilder views = builder;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    if (has_packed_weights(builder, views.view_of(builder.anchor().inputs[side]).value)) return side;
  }
  return std::nullopt;
}

bool read_packed_weights(ContractionBuilder& builder, const DotProblem& p, const Product& product, OperandView& o) {
  o.weights = packed_weights(builder, p, product.multiply_b);
  if (!o.weights) return false;
  const ir::Graph& graph = builder.graph();
  const ir::Node& node = graph.producer(p.b_view.value);
  const DType dtype = product.multiply_b;
  const int64_t blocks = graph.shape(node.inputs[1])[1];
  PackedWeights& w = *o.weights;
  o.form = OperandView::Form::kPacked, o.dtype = dtype, o.depth = product.k;
  if (dtype == DType::kF32) {  // rows as they are
    const auto as_floats = [&](ir::ValueId v) {
      return builder.input(v, number_packing(element_count(graph.shape(v)), DType::kF32));
    };
    o.operand = builder.input(node.inputs[0]), w.scales = as_floats(node.inputs[1]);
    if (node.inputs.size() == 3) {
      const bool bytes = graph.dtype(node.inputs[2]) == DType::kU8;
      w.third = bytes ? builder.input(node.inputs[2]) : as_floats(node.inputs[2]);
    }
    return true;
  }
  o.operand = builder.input(node.inputs[0], fragment_packing(product.n, product.k, w.bits));
  const auto of_blocks = [&](ir::ValueId value, int exponent) {
    return builder.input(value, fragment_scale_packing(product.n, blocks, w.blocks, dtype, exponent));
  };
  w.scales = of_blocks(node.inputs[1], w.exponent);
  if (node.inputs.size() < 3) return true;
  w.third = w.is_table ? builder.input(node.inputs[2], number_packing(int64_t{1} << w.bits, dtype))
                       : of_blocks(node.inputs[2], 0);
  return true;
}

bool pays_to_read_packed(const ir::Graph& graph, const ir::Group& packed, const ir::Group& widened,
                         const Target& target, std::string* reason) {
  const ContractionBuilder reader(graph, packed, target, nullptr), other(graph, widened, target, nullptr);
  const std::optional<double> us = packed_dot_us(reader);
  if (!us) {
    *reason = "no kernel reads them in packed form";
    return false;
  }
  const double dense = cuda_dot_us(other);
  *reason = fmt::format("{:.1f} us predicted, {:.1f} us as floats", *us, dense);
  return *us <= dense;
}

}  // namespace heddle::schedule
