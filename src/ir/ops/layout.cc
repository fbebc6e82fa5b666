#include "ir/ops/families.h"
#include "ir/ops/rules.h"

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
  for (const TensorType& part : c.inputs.subspan(1)) {
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

}  // namespace

std::span<const OpSchema> layout_schemas() {
  constexpr auto kInts = AttrKind::kInts;
  static const std::vector<OpSchema> table = {
      {Op::kBroadcast, 1, 1, {{"shape", kInts}, {"dims", kInts}}, infer_broadcast, nullptr},
      {Op::kReshape, 1, 1, {{"shape", kInts}}, infer_reshape, nullptr},
      {Op::kTranspose, 1, 1, {{"perm", kInts}}, infer_transpose, nullptr},
      {Op::kSlice, 1, 1, {{"starts", kInts}, {"limits", kInts}, {"strides", kInts}}, infer_slice, nullptr},
      {Op::kReverse, 1, 1, {{"dims", kInts}}, infer_reverse, nullptr},
      {Op::kPad, 2, 2, {{"low", kInts}, {"high", kInts}, {"mode", AttrKind::kText}}, infer_pad, nullptr},
      {Op::kConcat, 1, -1, {{"dim", AttrKind::kInt}}, infer_concat, nullptr},
  };
  return table;
}

}  // namespace heddle::ir
