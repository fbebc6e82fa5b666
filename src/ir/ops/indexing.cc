#include <algorithm>

#include "base/divide.h"
#include "ir/ops/combine.h"
#include "ir/ops/families.h"
#include "ir/ops/parallel.h"
#include "ir/ops/rules.h"
#include "ir/ops/strided.h"
#include "tile/core/pack.h"

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
  const Shape &indices = c.inputs[1].shape, &updates = c.inputs[2].shape, &data = c.inputs[0].shape;
  const auto dim = static_cast<size_t>(c.attrs.integer("dim"));
  bool fits = indices.size() == updates.size();
  for (size_t i = 0; fits && i < updates.size(); ++i) {
    fits = (indices[i] == updates[i] || indices[i] == 1) && (i == dim || updates[i] <= data[i]);
  }
  require(fits, "updates {} must have the extents of indices {}, any where those are 1, and lie within data {}",
          updates, indices, data);
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

// Index values with negative ones resolved; throws kValueOutOfRange.
class Resolver {
 public:
  Resolver(Op op, const Array& indices) : op_(op), unsigned_(is_unsigned_int(indices.dtype)) {}
  int64_t operator()(int64_t index, int64_t extent) const {
    const int64_t at = index < 0 && !unsigned_ ? index + extent : index;
    if (at < 0 || at >= extent) bad_index(op_, index, extent);
    return at;
  }

 private:
  Op op_;
  bool unsigned_;  // a u64 beyond 2^63 looks negative
};

std::vector<Array> eval_gather(const EvalContext& c) {
  const Array& data = *c.inputs[0];
  const Ints& indices = c.inputs[1]->i();
  const AroundDim around(data.shape, c.attrs.integer("dim"));
  const Resolver resolve(c.op, *c.inputs[1]);
  Array result(c.outputs[0].dtype, c.outputs[0].shape);
  Ints rows;
  rows.reserve(indices.size());
  for (int64_t index : indices) rows.push_back(resolve(index, around.extent) * around.inner);
  with_storage(data, result, [&](const auto& in, auto& out) {
    const auto count = static_cast<int64_t>(rows.size());
    parallel_for(around.outer * count, around.inner, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t from = i / count * around.extent * around.inner + rows[static_cast<size_t>(i % count)];
        std::copy_n(in.data() + from, around.inner, out.data() + i * around.inner);
      }
    });
  });
  return results_of(std::move(result));
}

// Visits every element of `shape`, to which the indices are broadcast: visit(linear index, offset in the data that it
// names). Those that lie outside of the data are left out where the node says `drop`.
template <typename Visit>
void for_each_element(const EvalContext& c, const Shape& shape, const Visit& visit) {
  if (element_count(shape) == 0) return;
  const Shape& data = c.inputs[0]->shape;
  const Array& indices = *c.inputs[1];
  const int64_t dim = c.attrs.integer("dim");
  const bool drop = c.attrs.has("drop") && c.attrs.flag("drop");
  Ints strides = row_major_strides(data), from = row_major_strides(indices.shape);
  for (size_t d = 0; d < shape.size(); ++d) from[d] = indices.shape[d] == 1 ? 0 : from[d];
  const int64_t extent = data[static_cast<size_t>(dim)], along = strides[static_cast<size_t>(dim)];
  strides[static_cast<size_t>(dim)] = 0;
  const int64_t length = shape.back(), step = strides.back(), next = from.back();
  const int64_t rows = extent_product(shape, 0, shape.size() - 1);
  const Resolver resolve(c.op, indices);
  const auto visit_row = [&](int64_t row, int64_t base, int64_t first) {
    for (int64_t j = 0; j < length; ++j) {
      const int64_t index = indices.i()[static_cast<size_t>(first + j * next)];
      if (drop && (index < 0 || index >= extent)) continue;
      visit(row * length + j, base + j * step + resolve(index, extent) * along);
    }
  };
  for_each_row(shape, strides, from, 0, rows, visit_row);
}

std::vector<Array> eval_gather_elements(const EvalContext& c) {
  const Array& data = *c.inputs[0];
  Array result(c.outputs[0].dtype, c.outputs[0].shape);
  with_storage(data, result, [&](const auto& in, auto& out) {
    for_each_element(c, c.inputs[1]->shape, [&](int64_t linear, int64_t offset) {
      out[static_cast<size_t>(linear)] = in[static_cast<size_t>(offset)];
    });
  });
  return results_of(std::move(result));
}

// Offsets in `data` of the slices that the tuples in the last dimension of `indices` name.
Ints tuple_offsets(const EvalContext& c, const Shape& data, size_t batch_dims) {
  const Array& indices = *c.inputs[1];
  const Ints strides = row_major_strides(data);
  const auto depth = static_cast<size_t>(indices.shape.back());
  const Resolver resolve(c.op, indices);
  const int64_t tuples = extent_product(indices.shape, 0, indices.shape.size() - 1);
  const int64_t per_batch = extent_product(indices.shape, batch_dims, indices.shape.size() - 1);
  const int64_t batch_size = extent_product(data, batch_dims, data.size());
  Ints offsets;
  offsets.reserve(static_cast<size_t>(tuples));
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t offset = t / per_batch * batch_size;
    for (size_t d = 0; d < depth; ++d) {
      const int64_t index = indices.i()[static_cast<size_t>(t) * depth + d];
      offset += resolve(index, data[batch_dims + d]) * strides[batch_dims + d];
    }
    offsets.push_back(offset);
  }
  return offsets;
}

std::vector<Array> eval_gather_nd(const EvalContext& c) {
  const Array& data = *c.inputs[0];
  const auto batch = static_cast<size_t>(c.attrs.integer("batch_dims"));
  const auto depth = static_cast<size_t>(c.inputs[1]->shape.back());
  const int64_t inner = extent_product(data.shape, batch + depth, data.shape.size());
  const Ints offsets = tuple_offsets(c, data.shape, batch);
  Array result(c.outputs[0].dtype, c.outputs[0].shape);
  with_storage(data, result, [&](const auto& in, auto& out) {
    auto at = out.begin();
    for (int64_t offset : offsets) at = std::copy_n(in.begin() + offset, inner, at);
  });
  return results_of(std::move(result));
}

// Copies the data and calls scatter(updates, result, combine), where combine(old, update) makes the new element.
template <typename Scatter>
std::vector<Array> scatter(const EvalContext& c, const Scatter& use) {
  Array result = *c.inputs[0];
  const std::string& kind = c.attrs.text("reduction");
  with_storage(*c.inputs[2], result, [&](const auto& updates, auto& out) {
    using T = typename std::decay_t<decltype(out)>::value_type;
    if (kind == "none") return use(updates, out, [](T, T update) { return update; });
    const auto apply = [&](const auto& f) { use(updates, out, f); };
    if constexpr (std::is_same_v<T, double>) {
      with_real_combine(combined_by(kind), [&](const auto& f) {
        // Every partial result is stored, hence rounded.
        if (!c.round) return apply(f);
        apply([&](double a, double b) { return round_to(result.dtype, f(a, b)); });
      });
    } else {
      with_int_combine(combined_by(kind), result.dtype, apply);
      wrap(result.dtype, out);
    }
  });
  return results_of(std::move(result));
}

std::vector<Array> eval_scatter_elements(const EvalContext& c) {
  return scatter(c, [&](const auto& updates, auto& out, const auto& combine) {
    for_each_element(c, c.inputs[2]->shape, [&](int64_t linear, int64_t offset) {
      auto& target = out[static_cast<size_t>(offset)];
      target = combine(target, updates[static_cast<size_t>(linear)]);
    });
  });
}

std::vector<Array> eval_scatter_nd(const EvalContext& c) {
  const Shape& data = c.inputs[0]->shape;
  const auto depth = static_cast<size_t>(c.inputs[1]->shape.back());
  const int64_t inner = extent_product(data, depth, data.size());
  const Ints offsets = tuple_offsets(c, data, 0);
  return scatter(c, [&](const auto& updates, auto& out, const auto& combine) {
    auto update = updates.begin();
    for (int64_t offset : offsets) {
      for (int64_t j = 0; j < inner; ++j, ++update) {
        auto& target = out[static_cast<size_t>(offset + j)];
        target = combine(target, *update);
      }
    }
  });
}

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
        const auto q =
            static_cast<int64_t>(word >> tile::packed_shift(i % per_word, bits) & ((uint32_t{1} << bits) - 1));
        const int64_t at = row * scales.shape[1] + i / block;
        const double value = is_table           ? element_of(*third, q)
                             : third != nullptr ? static_cast<double>(q) - element_of(*third, at)
                                                : static_cast<double>(q - zero);
        result.f()[static_cast<size_t>(row * k + i)] = value * element_of(scales, at);
      }
    }
  });
  return results_of(std::move(result));
}

}  // namespace

std::span<const OpSchema> indexing_schemas() {
  constexpr auto kInt = AttrKind::kInt;
  constexpr auto kText = AttrKind::kText;
  static const std::vector<OpSchema> table = {
      {Op::kGather, 2, 2, {{"dim", kInt}}, infer_gather, eval_gather},
      {Op::kGatherElements, 2, 2, {{"dim", kInt}}, infer_gather_elements, eval_gather_elements},
      {Op::kGatherNd, 2, 2, {{"batch_dims", kInt}}, infer_gather_nd, eval_gather_nd},
      {Op::kScatterElements,
       3,
       3,
       {{"dim", kInt},
        {"reduction", kText},
        {"drop", kInt, false},
        {"in_place", kInt, false},
        {"unordered", kInt, false}},
       infer_scatter_elements,
       eval_scatter_elements},
      {Op::kScatterNd,
       3,
       3,
       {{"reduction", kText}, {"in_place", kInt, false}, {"unordered", kInt, false}},
       infer_scatter_nd,
       eval_scatter_nd},
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
