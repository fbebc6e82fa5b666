#include <algorithm>

#include "base/divide.h"
#include "ir/ops/families.h"
#include "ir/ops/parallel.h"
#include "ir/ops/rules.h"
#include "tile/core/packed.h"

namespace heddle::ir {
namespace {

std::vector<TensorType> infer_dequantize(const InferContext& c) {
  const Shape& words = c.inputs[0].shape;
  const int64_t bits = c.attrs.integer("bits"), block = c.attrs.integer("block"), k = c.attrs.integer("k");
  const DType dtype = c.attrs.dtype("dtype");
  require(bits == 2 || bits == 4 || bits == 8, "bits = {} is none of 2, 4, 8", bits);
  require(block >= 1 && k >= 0, "block = {} must be at least 1, and k = {} at least 0", block, k);
  require(is_float(dtype), "a result of {} is not floating-point", dtype);
  require(c.inputs[0].dtype == DType::kU32 && words.size() == 2 && words[1] == ceil_div(k, tile::packed_per_word(bits)),
          "the integers {} must be rows of {} words u32", c.inputs[0], ceil_div(k, tile::packed_per_word(bits)));
  const Shape blocks = {words[0], ceil_div(k, block)};
  require(is_float(c.inputs[1].dtype) && c.inputs[1].shape == blocks, "the scales {} must be floats {}", c.inputs[1],
          blocks);
  if (c.inputs.size() == 3) {
    const TensorType& third = c.inputs[2];
    const bool is_table = third.shape == Shape{int64_t{1} << bits} && is_float(third.dtype);
    require(is_table || (third.shape == blocks && is_number(third.dtype)),
            "the third operand {} must be zero points {} or a table of {} floats", third, blocks, int64_t{1} << bits);
  }
  return {{dtype, {words[0], k}}};
}

double element_of(const Array& array, int64_t at) {
  return array.real() ? array.f()[static_cast<size_t>(at)] : static_cast<double>(array.i()[static_cast<size_t>(at)]);
}

std::vector<Array> eval_dequantize(const EvalContext& c) {
  const int64_t bits = c.attrs.integer("bits"), block = c.attrs.integer("block"), zero = c.attrs.integer("zero");
  const Array &words = *c.inputs[0], &scales = *c.inputs[1];
  const Array* third = c.inputs.size() == 3 ? c.inputs[2] : nullptr;
  const bool is_table = third != nullptr && third->shape.size() == 1;
  Array result(c.outputs[0].dtype, c.outputs[0].shape);
  const int64_t k = result.shape[1], per_word = tile::packed_per_word(bits), pitch = words.shape[1];
  parallel_for(result.shape[0], k, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < k; ++i) {
        const auto word = static_cast<uint32_t>(words.i()[static_cast<size_t>(row * pitch + i / per_word)]);
        const auto q = static_cast<int64_t>(word >> tile::packed_shift(i % per_word, bits) & ((uint32_t{1} << bits) - 1));
        const int64_t at = row * scales.shape[1] + i / block;
        const double value = is_table         ? element_of(*third, q)
                             : third != nullptr ? static_cast<double>(q) - element_of(*third, at)
                                                : static_cast<double>(q - zero);
        result.f()[static_cast<size_t>(row * k + i)] = value * element_of(scales, at);
      }
    }
  });
  return results_of(std::move(result));
}

}  // namespace

std::span<const OpSchema> packed_schemas() {
  constexpr auto kInt = AttrKind::kInt;
  static const std::vector<OpSchema> table = {
      {Op::kDequantize,
       2,
       3,
       {{"bits", kInt}, {"block", kInt}, {"k", kInt}, {"zero", kInt}, {"dtype", AttrKind::kDType}},
       infer_dequantize,
       eval_dequantize},
  };
  return table;
}

}  // namespace heddle::ir
