#include <algorithm>

#include "ir/ops/families.h"
#include "ir/ops/rules.h"

namespace heddle::ir {
namespace {

void require_indices(const TensorType& indices) {
  require(is_int(indices.dtype), "indices must be integers, not {}", indices.dtype);
}

std::vector<TensorType> infer_gather(const InferContext& c) {
  const Shape& data = c.inputs[0].shape;
  const Shape& indices = c.inputs[1].shape;
  const int64_t dim = c.attrs.integer("dim");
  require_indices(c.inputs[1]);
  require_dim("dim", dim, data);
  Shape to(data.begin(), data.begin() + dim);
  to.insert(to.end(), indices.begin(), indices.end());
  to.insert(to.end(), data.begin() + dim + 1, data.end());
  return {{c.inputs[0].dtype, std::move(to)}};
}

// GatherElements and ScatterElements: the index tensor lies within the data, except along `dim`.
void require_elements(const InferContext& c) {
  const Shape& data = c.inputs[0].shape;
  const Shape& indices = c.inputs[1].shape;
  const int64_t dim = c.attrs.integer("dim");
  require_indices(c.inputs[1]);
  require_dim("dim", dim, data);
  require(indices.size() == data.size(), "indices {} and data {} must have one rank", indices, data);
  for (size_t i = 0; i < data.size(); ++i) {
    require(static_cast<int64_t>(i) == dim || indices[i] <= data[i], "dimension {} of indices {} exceeds that of {}", i,
            indices, data);
  }
}

std::vector<TensorType> infer_gather_elements(const InferContext& c) {
  require_elements(c);
  return {{c.inputs[0].dtype, c.inputs[1].shape}};
}

std::vector<TensorType> infer_gather_nd(const InferContext& c) {
  const Shape& data = c.inputs[0].shape;
  const Shape& indices = c.inputs[1].shape;
  const int64_t batch = c.attrs.integer("batch_dims");
  require_indices(c.inputs[1]);
  require(!indices.empty(), "indices must have at least one dimension");
  const auto rank = static_cast<int64_t>(data.size());
  require(batch >= 0 && batch < rank && batch < static_cast<int64_t>(indices.size()),
          "batch_dims = {} must be below the ranks of data {} and indices {}", batch, data, indices);
  require(std::equal(data.begin(), data.begin() + batch, indices.begin()),
          "data {} and indices {} differ in the first {} dimensions", data, indices, batch);
  const int64_t depth = indices.back();
  require(depth >= 1 && depth <= rank - batch, "the last extent of indices {} must be 1 to {} for data {}", indices,
          rank - batch, data);
  Shape to(indices.begin(), indices.end() - 1);
  to.insert(to.end(), data.begin() + batch + depth, data.end());
  return {{c.inputs[0].dtype, std::move(to)}};
}

void require_reduction(const InferContext& c) {
  const std::string& kind = c.attrs.text("reduction");
  require(kind == "none" || kind == "add" || kind == "mul" || kind == "max" || kind == "min",
          "reduction = \"{}\" is none of \"none\", \"add\", \"mul\", \"max\", \"min\"", kind);
  require(kind == "none" || is_number(c.inputs[0].dtype), "reduction \"{}\" takes numbers, not {}", kind,
          c.inputs[0].dtype);
  require(c.inputs[0].dtype == c.inputs[2].dtype, "data {} and updates {} must have one dtype", c.inputs[0],
          c.inputs[2]);
}

std::vector<TensorType> infer_scatter_elements(const InferContext& c) {
  require_elements(c);
  require_reduction(c);
  require(c.inputs[1].shape == c.inputs[2].shape, "indices {} and updates {} must have one shape", c.inputs[1].shape,
          c.inputs[2].shape);
  return {c.inputs[0]};
}

std::vector<TensorType> infer_scatter_nd(const InferContext& c) {
  const Shape& data = c.inputs[0].shape;
  const Shape& indices = c.inputs[1].shape;
  require_indices(c.inputs[1]);
  require_reduction(c);
  require(!indices.empty(), "indices must have at least one dimension");
  const int64_t depth = indices.back();
  require(depth >= 1 && depth <= static_cast<int64_t>(data.size()),
          "the last extent of indices {} must be 1 to {} for data {}", indices, data.size(), data);
  Shape expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.begin() + depth, data.end());
  require(c.inputs[2].shape == expected, "updates must be {} for data {} and indices {}, not {}", expected, data,
          indices, c.inputs[2].shape);
  return {c.inputs[0]};
}

}  // namespace

std::span<const OpSchema> indexing_schemas() {
  constexpr auto kInt = AttrKind::kInt;
  constexpr auto kText = AttrKind::kText;
  static const std::vector<OpSchema> table = {
      {Op::kGather, 2, 2, {{"dim", kInt}}, infer_gather, nullptr},
      {Op::kGatherElements, 2, 2, {{"dim", kInt}}, infer_gather_elements, nullptr},
      {Op::kGatherNd, 2, 2, {{"batch_dims", kInt}}, infer_gather_nd, nullptr},
      {Op::kScatterElements, 3, 3, {{"dim", kInt}, {"reduction", kText}}, infer_scatter_elements, nullptr},
      {Op::kScatterNd, 3, 3, {{"reduction", kText}}, infer_scatter_nd, nullptr},
  };
  return table;
}

}  // namespace heddle::ir
