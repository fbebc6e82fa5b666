#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/families.h"
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

struct Sum {
  double operator()(double a, double b) const { return a + b; }
  int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct Prod {
  double operator()(double a, double b) const { return a * b; }
  int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
// The comparison is false for NaN on either side; an accumulated NaN stays, a new one is taken.
struct Max {
  double operator()(double a, double b) const { return a >= b || std::isnan(a) ? a : b; }
  int64_t operator()(int64_t a, int64_t b) const { return std::max(a, b); }
};
struct Min {
  double operator()(double a, double b) const { return a <= b || std::isnan(a) ? a : b; }
  int64_t operator()(int64_t a, int64_t b) const { return std::min(a, b); }
};

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
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t e = 0; e < extent; ++e) {
      T* to = out.data() + (o * extent + e) * inner;
      for (int64_t k = 0; k < w.sizes[dim]; ++k) {
        const int64_t at = e * w.strides[dim] + k * w.dilations[dim] - w.low[dim];
        if (at >= n) break;
        if (at < 0) continue;
        const T* from = x.data() + (o * n + at) * inner;
        for (int64_t i = 0; i < inner; ++i) to[i] = combine(to[i], from[i]);
      }
    }
  }
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

// Lowest and highest values of an integer type. u64 is held by its bits; compared with the sign bit flipped it orders
// like int64.
std::pair<int64_t, int64_t> int_range(DType type) {
  const int bits = bits_of(type);
  if (bits == 64) return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  if (is_unsigned_int(type)) return {0, (int64_t{1} << bits) - 1};
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

void flip_sign_bits(std::vector<int64_t>& values) {
  for (int64_t& v : values) v ^= std::numeric_limits<int64_t>::min();
}

std::vector<Array> eval_window_reduce(const EvalContext& context) {
  const Array& x = *context.inputs[0];
  const Window w = window_of(context.attrs);
  const std::string& kind = context.attrs.text("kind");
  const Shape& shape = context.outputs[0].shape;
  Array result;
  result.dtype = x.dtype;
  result.shape = shape;
  if (x.real()) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (kind == "sum") result.data = reduce_all(x.f(), x.shape, shape, w, 0.0, Sum{});
    if (kind == "prod") result.data = reduce_all(x.f(), x.shape, shape, w, 1.0, Prod{});
    if (kind == "max") result.data = reduce_all(x.f(), x.shape, shape, w, -kInf, Max{});
    if (kind == "min") result.data = reduce_all(x.f(), x.shape, shape, w, kInf, Min{});
    return {std::move(result)};
  }
  const auto [lowest, highest] = int_range(x.dtype);
  std::vector<int64_t> values = x.i();
  const bool flip = x.dtype == DType::kU64 && (kind == "max" || kind == "min");
  if (flip) flip_sign_bits(values);
  if (kind == "sum") values = reduce_all<int64_t>(std::move(values), x.shape, shape, w, 0, Sum{});
  if (kind == "prod") values = reduce_all<int64_t>(std::move(values), x.shape, shape, w, 1, Prod{});
  if (kind == "max") values = reduce_all<int64_t>(std::move(values), x.shape, shape, w, lowest, Max{});
  if (kind == "min") values = reduce_all<int64_t>(std::move(values), x.shape, shape, w, highest, Min{});
  if (flip) flip_sign_bits(values);
  result.data = std::move(values);
  return {std::move(result)};
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
