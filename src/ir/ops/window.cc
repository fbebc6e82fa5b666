#include "ir/ops/combine.h"
#include "ir/ops/families.h"
#include "ir/ops/parallel.h"
#include "ir/ops/rules.h"
#include "ir/ops/spatial.h"

namespace heddle::ir {
namespace {

struct Window {
  Ints sizes, strides, low, high, dilations;
};

Window window_of(const Attrs& attrs) {
  return {attrs.ints("window"), attrs.ints("strides"), attrs.ints("low"), attrs.ints("high"), attrs.ints("dilations")};
}

std::vector<TensorType> infer_window_reduce(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  const std::string& kind = context.attrs.text("kind");
  require(kind == "sum" || kind == "prod" || kind == "max" || kind == "min",
          "kind \"{}\" is none of sum, prod, max, min", kind);
  require(is_number(x.dtype), "window_reduce takes numbers, not {}", x.dtype);
  const Window w = window_of(context.attrs);
  const size_t rank = x.shape.size();
  check_spatial_attr("window", w.sizes, rank, 1);
  check_spatial_attr("strides", w.strides, rank, 1);
  check_spatial_attr("low", w.low, rank, 0);
  check_spatial_attr("high", w.high, rank, 0);
  check_spatial_attr("dilations", w.dilations, rank, 1);
  Shape shape(rank);
  for (size_t d = 0; d < rank; ++d) {
    shape[d] = windowed_extent(d, x.shape[d], w.low[d], w.high[d], w.sizes[d], w.dilations[d], w.strides[d]);
  }
  return {{x.dtype, std::move(shape)}};
}

// A rectangular window is the product of one-dimensional ones, and every kind is associative: one dimension at a time
// costs the sum of the window's sides instead of their product.
template <typename T, typename Combine>
std::vector<T> reduce_dim(const std::vector<T>& x, const Shape& shape, size_t dim, int64_t extent, const Window& w,
                          T identity, Combine combine) {
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < dim; ++d) outer *= shape[d];
  for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t n = shape[dim];
  std::vector<T> out(static_cast<size_t>(outer * extent * inner), identity);
  const int64_t taps = std::min(w.sizes[dim], n);
  parallel_for(outer * extent, inner * taps, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* to = out.data() + row * inner;
      const int64_t first = row % extent * w.strides[dim] - w.low[dim];
      for (int64_t k = 0; k < w.sizes[dim]; ++k) {
        const int64_t at = first + k * w.dilations[dim];
        if (at >= n) break;
        if (at < 0) continue;
        const T* from = x.data() + (row / extent * n + at) * inner;
        for (int64_t i = 0; i < inner; ++i) to[i] = combine(to[i], from[i]);
      }
    }
  });
  return out;
}

template <typename T, typename Combine>
std::vector<T> reduce_all(std::vector<T> x, Shape shape, const Shape& result, const Window& w, T identity,
                          Combine combine) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (w.sizes[d] == 1 && w.strides[d] == 1 && w.low[d] == 0 && w.high[d] == 0) continue;
    x = reduce_dim(x, shape, d, result[d], w, identity, combine);
    shape[d] = result[d];
  }
  return x;
}

std::vector<Array> eval_window_reduce(const EvalContext& context) {
  const Array& x = *context.inputs[0];
  const Window w = window_of(context.attrs);
  const Op op = combined_by(context.attrs.text("kind"));
  Array result;
  result.dtype = x.dtype;
  result.shape = context.outputs[0].shape;
  if (x.real()) {
    result.data = with_real_combine(op, [&](auto combine) {
      return reduce_all(x.f(), x.shape, result.shape, w, real_identity(op, x.dtype), combine);
    });
  } else {
    result.data = with_int_combine(op, x.dtype, [&](auto combine) {
      return reduce_all(x.i(), x.shape, result.shape, w, int_identity(op, x.dtype), combine);
    });
    wrap(result.dtype, result.i());
  }
  return results_of(std::move(result));
}

}  // namespace

std::span<const OpSchema> window_schemas() {
  static const std::vector<OpSchema> ops = {{Op::kWindowReduce,
                                             1,
                                             1,
                                             {{"kind", AttrKind::kText},
                                              {"window", AttrKind::kInts},
                                              {"strides", AttrKind::kInts},
                                              {"low", AttrKind::kInts},
                                              {"high", AttrKind::kInts},
                                              {"dilations", AttrKind::kInts}},
                                             infer_window_reduce,
                                             eval_window_reduce}};
  return ops;
}

}  // namespace heddle::ir
