#include "ir/ops/families.h"
#include "ir/ops/rules.h"
#include "ir/ops/strided.h"

namespace heddle::ir {
namespace {

std::vector<TensorType> infer_broadcast(const InferContext& c) {
  const Shape& from = c.inputs[0].shape;
  const Shape& to = c.attrs.ints("shape");
  const Ints& dims = c.attrs.ints("dims");
  require_type({c.inputs[0].dtype, to});
  require_per_dim("dims", dims, from);
  require_dims("dims", dims, to);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t target = to[static_cast<size_t>(dims[i])];
    require(from[i] == target || from[i] == 1, "dimension {} of {} is neither 1 nor the extent {} of {}", i, from,
            target, to);
  }
  return {{c.inputs[0].dtype, to}};
}

std::vector<TensorType> infer_reshape(const InferContext& c) {
  const Shape& to = c.attrs.ints("shape");
  require_type({c.inputs[0].dtype, to});
  require(element_count(to) == element_count(c.inputs[0].shape), "{} does not hold as many elements as {}", to,
          c.inputs[0].shape);
  return {{c.inputs[0].dtype, to}};
}

std::vector<TensorType> infer_transpose(const InferContext& c) {
  const Shape& from = c.inputs[0].shape;
  const Ints& perm = c.attrs.ints("perm");
  require_per_dim("perm", perm, from);
  std::vector<bool> seen(from.size());
  Shape to;
  for (int64_t p : perm) {
    require_dim("perm", p, from);
    require(!seen[static_cast<size_t>(p)], "perm = {} is not a permutation", perm);
    seen[static_cast<size_t>(p)] = true;
    to.push_back(from[static_cast<size_t>(p)]);
  }
  return {{c.inputs[0].dtype, std::move(to)}};
}

std::vector<TensorType> infer_slice(const InferContext& c) {
  const Shape& from = c.inputs[0].shape;
  const Ints& starts = c.attrs.ints("starts");
  const Ints& limits = c.attrs.ints("limits");
  const Ints& strides = c.attrs.ints("strides");
  require_per_dim("starts", starts, from);
  require_per_dim("limits", limits, from);
  require_per_dim("strides", strides, from);
  Shape to;
  for (size_t i = 0; i < from.size(); ++i) {
    require(0 <= starts[i] && starts[i] <= limits[i] && limits[i] <= from[i],
            "[{}, {}) is no range of dimension {} of {}", starts[i], limits[i], i, from);
    require(strides[i] >= 1, "stride {} of dimension {} is not positive", strides[i], i);
    const int64_t length = limits[i] - starts[i];
    to.push_back(length == 0 ? 0 : (length - 1) / strides[i] + 1);
  }
  return {{c.inputs[0].dtype, std::move(to)}};
}

std::vector<TensorType> infer_reverse(const InferContext& c) {
  require_dims("dims", c.attrs.ints("dims"), c.inputs[0].shape);
  return {c.inputs[0]};
}

std::vector<TensorType> infer_pad(const InferContext& c) {
  TensorType type = c.inputs[0];
  const Ints& low = c.attrs.ints("low");
  const Ints& high = c.attrs.ints("high");
  const std::string& mode = c.attrs.text("mode");
  require(c.inputs[1].dtype == type.dtype && c.inputs[1].shape.empty(), "the pad value must be {}[], not {}",
          type.dtype, c.inputs[1]);
  require(mode == "constant" || mode == "edge" || mode == "reflect" || mode == "wrap",
          "mode = \"{}\" is none of \"constant\", \"edge\", \"reflect\", \"wrap\"", mode);
  require_per_dim("low", low, type.shape);
  require_per_dim("high", high, type.shape);
  for (size_t i = 0; i < low.size(); ++i) {
    require(low[i] >= 0 && high[i] >= 0, "low = {}, high = {}: amounts are not negative", low, high);
    require(mode == "constant" || type.shape[i] > 0 || low[i] + high[i] == 0,
            "dimension {} of {} is empty: mode \"{}\" has nothing to repeat", i, type.shape, mode);
    int64_t& extent = type.shape[i];
    require(!__builtin_add_overflow(extent, low[i], &extent) && !__builtin_add_overflow(extent, high[i], &extent),
            "low = {}, high = {}: the extent overflows 64 bits", low, high);
  }
  return {std::move(type)};
}

std::vector<TensorType> infer_concat(const InferContext& c) {
  TensorType type = c.inputs[0];
  const int64_t dim = c.attrs.integer("dim");
  require_dim("dim", dim, type.shape);
  int64_t& extent = type.shape[static_cast<size_t>(dim)];
  for (size_t k = 1; k < c.inputs.size(); ++k) {
    const TensorType& part = c.inputs[k];
    bool same = part.dtype == type.dtype && part.shape.size() == type.shape.size();
    for (size_t i = 0; same && i < part.shape.size(); ++i) {
      same = static_cast<int64_t>(i) == dim || part.shape[i] == type.shape[i];
    }
    require(same, "{} and {} differ beside dimension {}", c.inputs[0], part, dim);
    require(!__builtin_add_overflow(extent, part.shape[static_cast<size_t>(dim)], &extent),
            "the extent of dimension {} overflows 64 bits", dim);
  }
  return {std::move(type)};
}

// One result whose elements are those of the first operand, walked with `strides` (per result dimension) from `offset`.
std::vector<Array> walk(const EvalContext& c, const Ints& strides, int64_t offset = 0) {
  Array result(c.outputs[0].dtype, c.outputs[0].shape);
  if (result.size() == 0) return results_of(std::move(result));
  with_storage(*c.inputs[0], result, [&](const auto& in, auto& out) {
    copy_strided(result.shape, in.data() + offset, strides, out.data(), row_major_strides(result.shape));
  });
  return results_of(std::move(result));
}

std::vector<Array> eval_broadcast(const EvalContext& c) {
  const Shape& from = c.inputs[0]->shape;
  const Ints& dims = c.attrs.ints("dims");
  const Ints own = row_major_strides(from);
  Ints strides(c.outputs[0].shape.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) strides[static_cast<size_t>(dims[i])] = from[i] == 1 ? 0 : own[i];
  return walk(c, strides);
}

std::vector<Array> eval_reshape(const EvalContext& c) {
  Array result = *c.inputs[0];
  result.shape = c.outputs[0].shape;
  return results_of(std::move(result));
}

std::vector<Array> eval_transpose(const EvalContext& c) {
  const Ints own = row_major_strides(c.inputs[0]->shape);
  Ints strides;
  for (int64_t p : c.attrs.ints("perm")) strides.push_back(own[static_cast<size_t>(p)]);
  return walk(c, strides);
}

std::vector<Array> eval_slice(const EvalContext& c) {
  Ints strides = row_major_strides(c.inputs[0]->shape);
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += c.attrs.ints("starts")[i] * strides[i];
    // A stride may be as large as it likes where only one element is taken.
    strides[i] = c.outputs[0].shape[i] > 1 ? strides[i] * c.attrs.ints("strides")[i] : 0;
  }
  return walk(c, strides, offset);
}

std::vector<Array> eval_reverse(const EvalContext& c) {
  Ints strides = row_major_strides(c.inputs[0]->shape);
  int64_t offset = 0;
  for (int64_t dim : c.attrs.ints("dims")) {
    int64_t& stride = strides[static_cast<size_t>(dim)];
    offset += (c.inputs[0]->shape[static_cast<size_t>(dim)] - 1) * stride;
    stride = -stride;
  }
  return walk(c, strides, offset);
}

// The operand index that a position before, inside or after [0, extent) repeats.
int64_t padded_index(const std::string& mode, int64_t position, int64_t extent) {
  if (mode == "edge" || extent == 1) return std::clamp<int64_t>(position, 0, extent - 1);
  const auto modulo = [](int64_t a, int64_t b) { return (a % b + b) % b; };
  if (mode == "wrap") return modulo(position, extent);
  const int64_t period = 2 * (extent - 1);
  const int64_t at = modulo(position, period);
  return at < extent ? at : period - at;
}

// Pads one dimension by repeating slices of the operand.
Array pad_dim(const Array& x, const std::string& mode, int64_t dim, int64_t low, int64_t high) {
  Shape shape = x.shape;
  shape[static_cast<size_t>(dim)] += low + high;
  const AroundDim from(x.shape, dim), to(shape, dim);
  Array result(x.dtype, std::move(shape));
  with_storage(x, result, [&](const auto& in, auto& out) {
    for (int64_t o = 0; o < to.outer; ++o) {
      for (int64_t i = 0; i < to.extent; ++i) {
        const int64_t source = o * from.extent + padded_index(mode, i - low, from.extent);
        std::copy_n(in.data() + source * to.inner, to.inner, out.data() + (o * to.extent + i) * to.inner);
      }
    }
  });
  return result;
}

std::vector<Array> eval_pad(const EvalContext& c) {
  const Ints& low = c.attrs.ints("low");
  const Ints& high = c.attrs.ints("high");
  const std::string& mode = c.attrs.text("mode");
  const Array& x = *c.inputs[0];
  if (mode != "constant") {
    Array result = x;
    for (size_t d = 0; d < low.size(); ++d) {
      if (low[d] + high[d] > 0) result = pad_dim(result, mode, static_cast<int64_t>(d), low[d], high[d]);
    }
    return results_of(std::move(result));
  }
  Array result(c.outputs[0].dtype, c.outputs[0].shape);
  const Ints strides = row_major_strides(result.shape);
  int64_t offset = 0;
  for (size_t d = 0; d < low.size(); ++d) offset += low[d] * strides[d];
  with_storage(x, result, [&](const auto& in, auto& out) {
    std::fill(out.begin(), out.end(), std::get<std::decay_t<decltype(in)>>(c.inputs[1]->data)[0]);
    if (!in.empty()) copy_strided(x.shape, in.data(), row_major_strides(x.shape), out.data() + offset, strides);
  });
  return results_of(std::move(result));
}

std::vector<Array> eval_concat(const EvalContext& c) {
  Array result(c.outputs[0].dtype, c.outputs[0].shape);
  const AroundDim to(result.shape, c.attrs.integer("dim"));
  int64_t offset = 0;
  for (const Array* part : c.inputs) {
    const int64_t block = AroundDim(part->shape, c.attrs.integer("dim")).extent * to.inner;
    with_storage(*part, result, [&](const auto& in, auto& out) {
      for (int64_t o = 0; o < to.outer && block > 0; ++o) {
        std::copy_n(in.data() + o * block, block, out.data() + o * to.extent * to.inner + offset);
      }
    });
    offset += block;
  }
  return results_of(std::move(result));
}

}  // namespace

std::span<const OpSchema> layout_schemas() {
  constexpr auto kInts = AttrKind::kInts;
  static const std::vector<OpSchema> table = {
      {Op::kBroadcast, 1, 1, {{"shape", kInts}, {"dims", kInts}}, infer_broadcast, eval_broadcast},
      {Op::kReshape, 1, 1, {{"shape", kInts}}, infer_reshape, eval_reshape},
      {Op::kTranspose, 1, 1, {{"perm", kInts}}, infer_transpose, eval_transpose},
      {Op::kSlice, 1, 1, {{"starts", kInts}, {"limits", kInts}, {"strides", kInts}}, infer_slice, eval_slice},
      {Op::kReverse, 1, 1, {{"dims", kInts}}, infer_reverse, eval_reverse},
      {Op::kPad, 2, 2, {{"low", kInts}, {"high", kInts}, {"mode", AttrKind::kText}}, infer_pad, eval_pad},
      {Op::kConcat, 1, -1, {{"dim", AttrKind::kInt}, {"in_place", AttrKind::kInt, false}}, infer_concat, eval_concat},
  };
  return table;
}

}  // namespace heddle::ir
