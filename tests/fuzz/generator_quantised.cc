#include "tests/fuzz/generator_quantised.h"

#include <algorithm>
#include <memory>

namespace heddle::fuzz {
namespace {

using ir::Ints;
using ir::Op;
using ir::ValueId;

bool is_byte(DType type) {
  return type == DType::kI8 || type == DType::kU8;
}

// Returns a random value for which `fits` is true; nullopt if there is none.
template <typename Fits>
std::optional<ValueId> one_of(State& s, const Fits& fits) {
  std::vector<ValueId> found;
  for (const ValueId v : s.values()) {
    if (element_count(s.graph().shape(v)) > 0 && fits(v)) found.push_back(v);
  }
  if (found.empty()) return std::nullopt;
  return s.rng().pick(found);
}

std::optional<ValueId> f32_of_rank(State& s, int64_t least) {
  return one_of(s, [&](ValueId v) { return s.graph().dtype(v) == DType::kF32 && s.builder().rank(v) >= least; });
}

ValueId bytes(State& s, DType type, const Shape& shape, bool constant) {
  Tensor values(type, shape);
  auto* data = static_cast<uint8_t*>(values.mutable_data());
  // Now and then only the ends of the range, for which 16-bit sums would saturate.
  const bool extreme = s.rng().chance(0.1);
  const int low = type == DType::kI8 ? 0x80 : 0, high = type == DType::kI8 ? 0x7f : 0xff;
  for (int64_t i = 0; i < values.size(); ++i) {
    data[i] = static_cast<uint8_t>(!extreme ? s.rng().range(0, 255) : s.rng().chance(0.5) ? low : high);
  }
  if (constant) return s.builder().constant(std::move(values));
  return s.random_value(type, shape);
}

// An existing or a new value of bytes with a rank of at least `least`.
ValueId any_bytes(State& s, const Shape& otherwise, size_t least) {
  const auto old =
      one_of(s, [&](ValueId v) { return is_byte(s.graph().dtype(v)) && s.graph().shape(v).size() >= least; });
  if (old && s.rng().chance(0.6)) return *old;
  return bytes(s, s.rng().chance(0.6) ? DType::kU8 : DType::kI8, otherwise, false);
}

// How bytes stand for numbers. `dim` < 0: one scale and zero point.
struct Parameters {
  ValueId scale = 0;
  std::optional<ValueId> zero;
  int64_t dim = -1;
};

Parameters parameters(State& s, DType type, const Shape& shape, int64_t dim, bool may_have_zero = true) {
  ir::Builder& g = s.builder();
  Parameters p{0, std::nullopt, dim};
  const Shape small = dim < 0 ? Shape{} : Shape{shape[static_cast<size_t>(dim)]};
  Tensor scale(DType::kF32, small), zero(type, small);
  for (float& v : scale.mutable_values<float>()) v = static_cast<float>(s.rng().real(0.002, 0.05));
  p.scale = g.constant(std::move(scale));
  if (!may_have_zero || s.rng().chance(0.4)) return p;
  auto* data = static_cast<uint8_t*>(zero.mutable_data());
  const auto all = static_cast<uint8_t>(s.rng().range(0, 255));
  for (int64_t i = 0; i < zero.size(); ++i)
    data[i] = s.rng().chance(0.5) ? all : static_cast<uint8_t>(s.rng().range(0, 255));
  p.zero = g.constant(std::move(zero));
  return p;
}

int64_t maybe_dim(State& s, int64_t dim) {
  return s.rng().chance(0.5) ? dim : -1;
}

ValueId spread(State& s, ValueId v, const Shape& shape, int64_t dim) {
  return s.builder().broadcast(v, shape, dim < 0 ? Ints{} : Ints{dim});
}

ValueId centred(State& s, ValueId q, const Parameters& p) {
  ir::Builder& g = s.builder();
  const ValueId wide = g.cast(q, DType::kI32);
  return p.zero ? g.sub(wide, spread(s, g.cast(*p.zero, DType::kI32), g.shape(q), p.dim)) : wide;
}

ValueId dequantised(State& s, ValueId q, const Parameters& p) {
  ir::Builder& g = s.builder();
  return g.mul(g.cast(centred(s, q, p), DType::kF32), spread(s, p.scale, g.shape(q), p.dim));
}

// round(x / scale) + zero, saturated.
ValueId quantised(State& s, ValueId x, DType type, const Parameters& p) {
  ir::Builder& g = s.builder();
  const Shape shape = g.shape(x);
  const auto exact = [&](ValueId v) { return g.cast(v, DType::kF64); };
  const ValueId ratio = g.cast(g.div(exact(x), exact(spread(s, p.scale, shape, p.dim))), DType::kF32);
  ValueId rounded = g.unary(Op::kRound, ratio);
  if (p.zero) rounded = g.add(rounded, spread(s, g.cast(*p.zero, DType::kF32), shape, p.dim));
  const double low = type == DType::kI8 ? -128 : 0;
  return g.cast(g.binary(Op::kMin, g.binary(Op::kMax, rounded, low), low + 255), type);
}

// Appends what follows a product: a bias, a residual, an activation, and a conversion to bytes.
void finish(State& s, ValueId y, int64_t channel) {
  ir::Builder& g = s.builder();
  const Shape shape = g.shape(y);
  if (s.rng().chance(0.4)) {
    const ValueId bias = s.random_value(DType::kF32, {shape[static_cast<size_t>(channel)]});
    y = g.add(y, spread(s, bias, shape, channel));
  }
  if (s.rng().chance(0.3)) {
    const auto other = one_of(s, [&](ValueId v) { return g.dtype(v) == DType::kF32 && g.shape(v) == shape; });
    if (other) y = g.add(y, *other);
  }
  if (s.rng().chance(0.3)) y = g.binary(Op::kMax, y, 0.0);
  if (s.rng().chance(0.2)) y = g.binary(Op::kMin, y, 3.0);
  if (s.rng().chance(0.15)) y = g.sigmoid(y);
  if (s.rng().chance(0.6)) {
    const DType type = s.rng().chance(0.6) ? DType::kU8 : DType::kI8;
    const ValueId q = quantised(s, y, type, parameters(s, type, shape, -1));
    s.keep(q);
    if (s.rng().chance(0.7)) return;
  }
  s.keep(y);
}

struct Product {
  ValueId x, w;  // [.., m, k] and [.., k, n]
  Parameters of_x, of_w;
};

// Operands of a product, and how their bytes stand for numbers.
std::optional<Product> operands(State& s, bool may_vary) {
  ir::Builder& g = s.builder();
  const ValueId x = any_bytes(s, {s.extent() + 1, s.rng().range(1, 70)}, 2);
  const Shape shape = g.shape(x);
  const int64_t rank = g.rank(x), k = shape.back(), n = s.rng().chance(0.5) ? s.extent() + 1 : s.rng().range(1, 70);
  if (element_count(shape) == 0) return std::nullopt;
  Shape w_shape = {k, n};
  const bool batched = rank > 2 && s.rng().chance(0.4);
  if (batched) w_shape.insert(w_shape.begin(), shape.begin(), shape.end() - 2);
  if (!s.fits(w_shape)) return std::nullopt;
  const DType type = s.rng().chance(0.7) ? DType::kI8 : DType::kU8;
  const ValueId w = bytes(s, type, w_shape, !may_vary || s.rng().chance(0.8));
  const auto columns = static_cast<int64_t>(w_shape.size()) - 1;
  // A scale along the sum keeps the product in floats.
  const int64_t of_w = s.rng().chance(0.1) ? columns - 1 : maybe_dim(s, columns);
  const int64_t of_x = s.rng().chance(0.15) ? rank - 2 : -1;
  return Product{x, w, parameters(s, g.dtype(x), shape, of_x), parameters(s, type, w_shape, of_w)};
}

// Random attributes of a convolution of an image of `shape`, with channels second. Sets `w` to the shape of the
// filters.
std::optional<ir::Attrs> convolution(State& s, const Shape& shape, Shape& w) {
  const int64_t channels = shape[1];
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= channels; ++d) {
    if (channels % d == 0) divisors.push_back(d);
  }
  const int64_t groups = s.rng().chance(0.6) ? 1 : s.rng().chance(0.5) ? channels : s.rng().pick(divisors);
  w = {groups * s.rng().range(1, groups > 1 ? 2 : 36), channels / groups};
  Ints strides, low, high, dilations;
  for (size_t d = 2; d < shape.size(); ++d) {
    w.push_back(s.rng().chance(0.4) ? 1 : s.rng().range(2, 3));
    strides.push_back(s.rng().chance(0.3) ? 2 : 1);
    dilations.push_back(s.rng().chance(0.15) ? 2 : 1);
    const int64_t reach = (w.back() - 1) * dilations.back() + 1;
    low.push_back(s.rng().range(0, reach - 1)), high.push_back(s.rng().range(0, reach - 1));
    if (shape[d] + low.back() + high.back() < reach) return std::nullopt;
  }
  const Ints once(strides.size(), 1);
  return ir::Attrs{{"strides", strides},    {"low", low},       {"high", high},    {"dilations", dilations},
                   {"lhs_dilations", once}, {"groups", groups}, {"layout", "nchw"}};
}

// An image of bytes.
ValueId any_image(State& s) {
  const int64_t spatial = s.rng().chance(0.8) ? 2 : 1;
  Shape shape = {s.rng().range(1, 2), s.rng().chance(0.5) ? s.rng().range(1, 9) : 4 * s.rng().range(1, 8)};
  for (int64_t d = 0; d < spatial; ++d) shape.push_back(s.rng().range(1, 11));
  return any_bytes(s, shape, 3);
}

// x with a scale and a zero point from the range of its elements, as a body or a graph computes it.
ValueId dynamically_rounded(ir::Builder& g, ValueId x) {
  Ints all;
  for (int64_t d = 0; d < g.rank(x); ++d) all.push_back(d);
  const ValueId low = g.binary(Op::kMin, g.reduce("min", x, all), 0.0);
  const ValueId high = g.binary(Op::kMax, g.reduce("max", x, all), 0.0);
  const auto ratio = [&](ValueId a, ValueId b) {
    return g.cast(g.div(g.cast(a, DType::kF64), g.cast(b, DType::kF64)), DType::kF32);
  };
  const auto to_bytes = [&](ValueId v) {
    return g.cast(g.binary(Op::kMin, g.binary(Op::kMax, v, 0.0), 255.0), DType::kU8);
  };
  const ValueId range = g.sub(high, low);
  const ValueId scale =
      g.select(g.binary(Op::kEq, range, 0.0), g.scalar(DType::kF32, 1), ratio(range, g.scalar(DType::kF32, 255)));
  const ValueId zero = to_bytes(g.unary(Op::kRound, g.unary(Op::kNeg, ratio(low, scale))));
  const ValueId q = to_bytes(g.add(g.unary(Op::kRound, ratio(x, scale)), g.cast(zero, DType::kF32)));
  const ValueId difference = g.sub(g.cast(q, DType::kI32), g.cast(zero, DType::kI32));
  return g.mul(g.cast(difference, DType::kF32), scale);
}

}  // namespace

void add_quantisation(State& s) {
  const auto x = f32_of_rank(s, 0);
  if (!x) return;
  const DType type = s.rng().chance(0.6) ? DType::kU8 : DType::kI8;
  const int64_t rank = s.builder().rank(*x);
  const int64_t dim = rank > 0 && s.rng().chance(0.15) ? s.rng().range(0, rank - 1) : -1;
  s.keep(quantised(s, *x, type, parameters(s, type, s.graph().shape(*x), dim)));
}

void add_dequantisation(State& s) {
  const ValueId q = any_bytes(s, s.shape(3), 0);
  const int64_t rank = s.builder().rank(q);
  const int64_t dim = rank > 0 && s.rng().chance(0.2) ? s.rng().range(0, rank - 1) : -1;
  s.keep(dequantised(s, q, parameters(s, s.graph().dtype(q), s.graph().shape(q), dim)));
}

void add_dequantised_dot(State& s) {
  const auto p = operands(s, true);
  if (!p) return;
  const ValueId y = s.builder().matmul(dequantised(s, p->x, p->of_x), dequantised(s, p->w, p->of_w));
  finish(s, y, s.builder().rank(y) - 1);
}

void add_dequantised_conv(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = any_image(s);
  Shape w_shape;
  const auto attrs = convolution(s, g.shape(x), w_shape);
  if (!attrs) return;
  const DType type = s.rng().chance(0.8) ? DType::kI8 : DType::kU8;
  const ValueId w = bytes(s, type, w_shape, s.rng().chance(0.9));
  const Parameters of_x = parameters(s, g.dtype(x), g.shape(x), -1);
  const Parameters of_w = parameters(s, type, w_shape, maybe_dim(s, 0), s.rng().chance(0.3));
  finish(s, g.emit(Op::kConv, {dequantised(s, x, of_x), dequantised(s, w, of_w)}, *attrs), 1);
}

void add_integer_dot(State& s) {
  ir::Builder& g = s.builder();
  const auto p = operands(s, true);
  if (!p) return;
  const bool plain = !p->of_x.zero && !p->of_w.zero && s.rng().chance(0.5);  // the product widens bytes itself
  const ValueId sum = plain ? g.matmul(p->x, p->w) : g.matmul(centred(s, p->x, p->of_x), centred(s, p->w, p->of_w));
  if (s.rng().chance(0.2)) return s.keep(sum);
  const ValueId scale = g.constant(Tensor::of<float>(DType::kF32, {}, {static_cast<float>(s.rng().real(1e-4, 1e-3))}));
  finish(s, g.mul(g.cast(sum, DType::kF32), g.broadcast(scale, g.shape(sum), {})), g.rank(sum) - 1);
}

void add_integer_conv(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = any_image(s);
  Shape w_shape;
  const auto attrs = convolution(s, g.shape(x), w_shape);
  if (!attrs) return;
  const ValueId w = bytes(s, DType::kI8, w_shape, true);
  const Parameters of_x = parameters(s, g.dtype(x), g.shape(x), -1);
  const Parameters of_w = parameters(s, DType::kI8, w_shape, maybe_dim(s, 0), s.rng().chance(0.3));
  ValueId sum = g.emit(Op::kConv, {centred(s, x, of_x), centred(s, w, of_w)}, *attrs);
  const Shape shape = g.shape(sum);
  if (s.rng().chance(0.5)) sum = g.add(sum, spread(s, s.random_value(DType::kI32, {shape[1]}), shape, 1));
  const ValueId scales = g.mul(g.broadcast(of_x.scale, g.shape(of_w.scale), {}), of_w.scale);
  finish(s, g.mul(g.cast(sum, DType::kF32), spread(s, scales, shape, of_w.dim < 0 ? -1 : 1)), 1);
}

void add_dynamic_dot(State& s) {
  ir::Builder& g = s.builder();
  const auto x = f32_of_rank(s, 2);
  if (!x) return;
  const Shape w_shape = {g.shape(*x).back(), s.rng().range(1, 40)};
  const DType type = s.rng().chance(0.7) ? DType::kI8 : DType::kU8;
  const ValueId w = dequantised(s, bytes(s, type, w_shape, true), parameters(s, type, w_shape, maybe_dim(s, 1)));
  const ValueId y = g.matmul(dynamically_rounded(g, *x), w);
  finish(s, y, g.rank(y) - 1);
}

// A product with weights in blocks along the sum, unpacked from bytes in the layout of MatMulNBits.
void add_dot_of_few_bits(State& s) {
  ir::Builder& g = s.builder();
  const auto x = f32_of_rank(s, 2);
  if (!x) return;
  const int64_t k = g.shape(*x).back(), n = s.rng().range(1, 40), bits = s.rng().pick(std::vector<int64_t>{2, 4, 8});
  const int64_t block = s.rng().pick(std::vector<int64_t>{8, 16, 32}), blocks = (k + block - 1) / block;
  ValueId q = bytes(s, DType::kU8, {n, blocks * block * bits / 8}, true);
  if (bits < 8) {
    std::vector<ValueId> parts;
    for (int64_t shift = 0; shift < 8; shift += bits) {
      const ValueId low = g.binary(Op::kShr, q, static_cast<double>(shift));
      parts.push_back(g.reshape(g.binary(Op::kAnd, low, static_cast<double>((1 << bits) - 1)), {n, g.shape(q)[1], 1}));
    }
    q = g.reshape(g.concat(parts, 2), {n, blocks * block});
  }
  const auto by_block = [&](ValueId v) {
    const ValueId wide = g.reshape(g.broadcast(v, {n, blocks, block}, {0, 1}), {n, blocks * block});
    return g.slice_dim(wide, 1, 0, k);
  };
  ValueId wide = g.cast(g.slice_dim(q, 1, 0, k), DType::kF32);
  if (s.rng().chance(0.5)) {
    wide = g.binary(Op::kSub, wide, static_cast<double>(1 << (bits - 1)));
  } else {
    Tensor zeros(DType::kU8, {n, blocks});
    for (uint8_t& z : zeros.mutable_values<uint8_t>()) z = static_cast<uint8_t>(s.rng().range(0, (1 << bits) - 1));
    wide = g.sub(wide, by_block(g.cast(g.constant(std::move(zeros)), DType::kF32)));
  }
  Tensor scales(DType::kF32, {n, blocks});
  for (float& v : scales.mutable_values<float>()) v = static_cast<float>(s.rng().real(0.002, 0.02));
  const ValueId w = g.mul(wide, by_block(g.constant(std::move(scales))));
  const ValueId y = g.matmul(*x, g.transpose(w, {1, 0}));
  finish(s, y, g.rank(y) - 1);
}

void add_residual(State& s) {
  ir::Builder& g = s.builder();
  const ValueId a = any_bytes(s, s.shape(3), 0);
  const Shape shape = g.shape(a);
  const auto b = one_of(s, [&](ValueId v) { return is_byte(g.dtype(v)) && g.shape(v) == shape; });
  const ValueId other = b ? *b : bytes(s, DType::kU8, shape, false);
  const auto real = [&](ValueId q) { return dequantised(s, q, parameters(s, g.dtype(q), shape, -1)); };
  const ValueId y = g.binary(s.rng().chance(0.8) ? Op::kAdd : Op::kMul, real(a), real(other));
  const DType type = s.rng().chance(0.6) ? DType::kU8 : DType::kI8;
  s.keep(quantised(s, s.rng().chance(0.3) ? g.binary(Op::kMax, y, 0.0) : y, type, parameters(s, type, shape, -1)));
}

void add_pool_of_bytes(State& s) {
  ir::Builder& g = s.builder();
  const ValueId q = any_image(s);
  const Shape shape = g.shape(q);
  Ints window(shape.size(), 1), strides(shape.size(), 1), none(shape.size(), 0), once(shape.size(), 1);
  int64_t count = 1;
  for (size_t d = 2; d < shape.size(); ++d) {
    window[d] = s.rng().range(1, std::min<int64_t>(3, shape[d])), strides[d] = s.rng().range(1, 2);
    count *= window[d];
  }
  const Parameters p = parameters(s, g.dtype(q), shape, -1);
  const bool averages = s.rng().chance(0.4);
  ValueId y = g.emit(Op::kWindowReduce, {dequantised(s, q, p)},
                     {{"kind", averages ? "sum" : "max"},
                      {"window", window},
                      {"strides", strides},
                      {"low", none},
                      {"high", none},
                      {"dilations", once}});
  if (averages) y = g.binary(Op::kDiv, y, static_cast<double>(count));
  s.keep(s.rng().chance(0.7) ? quantised(s, y, g.dtype(q), p) : y);
}

// A recurrence with byte weights from outside the loop.
void add_loop_of_bytes(State& s) {
  ir::Builder& g = s.builder();
  const int64_t rows = s.rng().range(1, 3), units = s.rng().range(1, 40), steps = s.rng().range(1, 4);
  const DType type = s.rng().chance(0.7) ? DType::kI8 : DType::kU8;
  const Shape w_shape = {units, units};
  const ValueId w = dequantised(s, bytes(s, type, w_shape, true), parameters(s, type, w_shape, maybe_dim(s, 1)));
  auto body = std::make_shared<ir::Graph>();
  ir::Builder b(*body);
  body->parameter("i", {DType::kI64, {}});
  const ValueId condition = body->parameter("go", {DType::kBool, {}});
  const ValueId state = body->parameter("state", {DType::kF32, {rows, units}});
  const ValueId weights = body->parameter("weights", {DType::kF32, w_shape});
  const ValueId x = s.rng().chance(0.5) ? dynamically_rounded(b, state) : state;
  const ValueId next = b.unary(Op::kTanh, b.add(b.matmul(x, weights), state));
  body->output("go", condition), body->output("state", next), body->output("slice", next);
  const ValueId initial = s.random_value(DType::kF32, {rows, units});
  const auto results =
      g.emit_all(Op::kLoop, {g.scalar(DType::kI64, static_cast<double>(steps)), g.scalar(DType::kBool, 1), initial, w},
                 {{"body", std::shared_ptr<const ir::Graph>(body)},
                  {"states", int64_t{1}},
                  {"scans", int64_t{1}},
                  {"trip", steps}});
  for (const ValueId v : results) s.keep(v);
}

}  // namespace heddle::fuzz
