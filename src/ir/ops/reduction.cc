#include <algorithm>

#include "ir/ops/families.h"
#include "ir/ops/rules.h"

namespace heddle::ir {
namespace {

void require_kind(const std::string& kind) {
  require(kind == "sum" || kind == "prod" || kind == "max" || kind == "min",
          "kind = \"{}\" is none of \"sum\", \"prod\", \"max\", \"min\"", kind);
}

std::vector<TensorType> infer_reduce(const InferContext& c) {
  const TensorType& x = c.inputs[0];
  const std::string& kind = c.attrs.text("kind");
  const Ints& dims = c.attrs.ints("dims");
  if (kind == "any" || kind == "all") {
    require(x.dtype == DType::kBool, "reduce \"{}\" takes bool, not {}", kind, x.dtype);
  } else {
    require_kind(kind);
    require(is_number(x.dtype), "reduce \"{}\" takes numbers, not {}", kind, x.dtype);
  }
  require_dims("dims", dims, x.shape);
  Shape to;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (!std::binary_search(dims.begin(), dims.end(), static_cast<int64_t>(i))) to.push_back(x.shape[i]);
  }
  return {{x.dtype, std::move(to)}};
}

std::vector<TensorType> infer_arg_reduce(const InferContext& c) {
  const TensorType& x = c.inputs[0];
  const std::string& kind = c.attrs.text("kind");
  const int64_t dim = c.attrs.integer("dim");
  require(kind == "max" || kind == "min", "kind = \"{}\" is neither \"max\" nor \"min\"", kind);
  require(is_number(x.dtype), "arg_reduce takes numbers, not {}", x.dtype);
  require_dim("dim", dim, x.shape);
  require(x.shape[static_cast<size_t>(dim)] > 0, "dimension {} of {} is empty: there is no index to give", dim,
          x.shape);
  Shape to = x.shape;
  to.erase(to.begin() + dim);
  return {{DType::kI64, std::move(to)}};
}

std::vector<TensorType> infer_scan(const InferContext& c) {
  require_kind(c.attrs.text("kind"));
  require(is_number(c.inputs[0].dtype), "scan takes numbers, not {}", c.inputs[0].dtype);
  require_dim("dim", c.attrs.integer("dim"), c.inputs[0].shape);
  return {c.inputs[0]};
}

std::vector<TensorType> infer_topk(const InferContext& c) {
  TensorType type = c.inputs[0];
  const int64_t dim = c.attrs.integer("dim");
  const int64_t k = c.attrs.integer("k");
  require(is_number(type.dtype), "topk takes numbers, not {}", type.dtype);
  require_dim("dim", dim, type.shape);
  int64_t& extent = type.shape[static_cast<size_t>(dim)];
  require(k >= 0 && k <= extent, "k = {} is not within 0 and the extent {} of dimension {}", k, extent, dim);
  extent = k;
  Shape shape = type.shape;
  return {std::move(type), {DType::kI64, std::move(shape)}};
}

}  // namespace

std::span<const OpSchema> reduction_schemas() {
  constexpr auto kInt = AttrKind::kInt;
  constexpr auto kText = AttrKind::kText;
  static const std::vector<OpSchema> table = {
      {Op::kReduce, 1, 1, {{"kind", kText}, {"dims", AttrKind::kInts}}, infer_reduce, nullptr},
      {Op::kArgReduce, 1, 1, {{"kind", kText}, {"dim", kInt}, {"last", kInt}}, infer_arg_reduce, nullptr},
      {Op::kScan, 1, 1, {{"kind", kText}, {"dim", kInt}, {"exclusive", kInt}, {"reverse", kInt}}, infer_scan, nullptr},
      {Op::kTopK, 1, 1, {{"k", kInt}, {"dim", kInt}, {"largest", kInt}, {"sorted", kInt}}, infer_topk, nullptr},
  };
  return table;
}

}  // namespace heddle::ir
