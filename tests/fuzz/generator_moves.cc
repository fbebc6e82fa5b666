#include <algorithm>
#include <numeric>

#include "tests/fuzz/generator_state.h"

namespace heddle::fuzz {

using ir::Ints;
using ir::Op;
using ir::ValueId;

namespace {

int64_t any_dim(State& s, ValueId v) {
  return s.rng().range(0, s.builder().rank(v) - 1);
}

// A value with at least one dimension and no empty one.
ValueId any_solid(State& s) {
  for (int i = 0; i < 8; ++i) {
    const ValueId v = s.any();
    if (s.builder().rank(v) > 0 && element_count(s.builder().shape(v)) > 0) return v;
  }
  return s.random_value(DType::kF32, {s.rng().range(1, 9)});
}

}  // namespace

void add_broadcast(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = s.any();
  Shape to = g.shape(x);
  Ints dims(to.size());
  std::iota(dims.begin(), dims.end(), 0);
  if (to.size() < 4) {
    const int64_t at = s.rng().range(0, static_cast<int64_t>(to.size()));
    to.insert(to.begin() + at, s.extent());
    for (int64_t& d : dims) d += d >= at;
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t& extent = to[static_cast<size_t>(dims[i])];
    if (extent == 1) extent = s.extent();
  }
  if (s.fits(to)) s.keep(g.broadcast(x, to, dims));
}

void add_reshape(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = s.any();
  Shape shape = g.shape(x);
  for (int64_t i = s.rng().range(1, 3); i > 0; --i) {
    const auto at = s.rng().range(0, static_cast<int64_t>(shape.size()));
    if (s.rng().chance(0.3) && shape.size() < 5) {
      shape.insert(shape.begin() + at, 1);
    } else if (s.rng().chance(0.5) && shape.size() > 1 && at + 1 < static_cast<int64_t>(shape.size())) {
      shape[static_cast<size_t>(at)] *= shape[static_cast<size_t>(at) + 1];
      shape.erase(shape.begin() + at + 1);
    } else if (at < static_cast<int64_t>(shape.size()) && shape.size() < 5) {
      for (int64_t factor : {7, 5, 4, 3, 2}) {
        if (shape[static_cast<size_t>(at)] % factor != 0 || shape[static_cast<size_t>(at)] == 0) continue;
        shape[static_cast<size_t>(at)] /= factor;
        shape.insert(shape.begin() + at + 1, factor);
        break;
      }
    }
  }
  s.keep(g.reshape(x, shape));
}

void add_transpose(State& s) {
  const ValueId x = s.any();
  Ints perm(static_cast<size_t>(s.builder().rank(x)));
  std::iota(perm.begin(), perm.end(), 0);
  s.rng().shuffle(perm);
  s.keep(s.builder().transpose(x, perm));
}

void add_slice(State& s) {
  const ValueId x = s.any();
  Ints starts, limits, strides;
  for (int64_t extent : s.builder().shape(x)) {
    const bool whole = s.rng().chance(0.4);
    starts.push_back(whole ? 0 : s.rng().range(0, extent / 2));
    limits.push_back(whole ? extent : s.rng().range(starts.back(), extent));
    if (limits.back() == starts.back() && limits.back() < extent) ++limits.back();
    strides.push_back(s.rng().chance(0.3) ? s.rng().range(1, 4) : 1);
  }
  s.keep(s.builder().slice(x, starts, limits, strides));
}

void add_reverse(State& s) {
  const ValueId x = s.any();
  s.keep(s.builder().emit(Op::kReverse, {x}, {{"dims", s.some_dims(s.builder().shape(x), true)}}));
}

void add_pad(State& s) {
  static const std::vector<std::string> modes = {"constant", "constant", "constant", "edge", "reflect", "wrap"};
  ir::Builder& g = s.builder();
  const ValueId x = any_solid(s);
  Ints low, high;
  for (size_t d = 0; d < g.shape(x).size(); ++d) {
    low.push_back(s.rng().chance(0.4) ? s.rng().range(0, 3) : 0);
    high.push_back(s.rng().chance(0.4) ? s.rng().range(0, 3) : 0);
  }
  const ValueId fill = s.rng().chance(0.7) ? g.scalar(g.dtype(x), 0) : s.random_value(g.dtype(x), {});
  s.keep(g.emit(Op::kPad, {x, fill}, {{"low", low}, {"high", high}, {"mode", s.rng().pick(modes)}}));
}

void add_concat(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = any_solid(s);
  const int64_t dim = any_dim(s, x);
  std::vector<ValueId> parts = {x};
  for (ValueId v : s.values()) {
    Shape shape = g.shape(v);
    if (g.dtype(v) != g.dtype(x) || g.rank(v) != g.rank(x)) continue;
    shape[static_cast<size_t>(dim)] = g.shape(x)[static_cast<size_t>(dim)];
    if (shape == g.shape(x) && s.rng().chance(0.5)) parts.push_back(v);
  }
  if (parts.size() == 1) {
    Shape shape = g.shape(x);
    shape[static_cast<size_t>(dim)] = s.rng().range(1, 5);
    parts.push_back(s.random_value(g.dtype(x), shape));
  }
  parts.resize(std::min<size_t>(parts.size(), 5));
  s.rng().shuffle(parts);
  s.keep(g.concat(parts, dim));
}

void add_gather(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = any_solid(s);
  const int64_t dim = any_dim(s, x);
  Shape shape(static_cast<size_t>(s.rng().range(0, 2)));
  for (int64_t& e : shape) e = s.rng().range(1, 9);
  const ValueId v = g.gather(x, s.random_indices(shape, g.shape(x)[static_cast<size_t>(dim)]), dim);
  if (g.rank(v) <= 5) s.keep(v);
}

void add_gather_elements(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = any_solid(s);
  const int64_t dim = any_dim(s, x);
  Shape shape = g.shape(x);
  const int64_t extent = shape[static_cast<size_t>(dim)];
  for (int64_t& e : shape) e = s.rng().range(1, e);
  shape[static_cast<size_t>(dim)] = s.rng().range(1, 9);
  s.keep(g.emit(Op::kGatherElements, {x, s.random_indices(shape, extent)}, {{"dim", dim}}));
}

// Index tuples for gather_nd and scatter_nd: the values must suit the axis of their column.
static std::vector<int64_t> tuples(State& s, int64_t count, const Shape& data, size_t first, size_t depth) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) {
    for (size_t d = 0; d < depth; ++d) values.push_back(s.rng().range(0, data[first + d] - 1));
  }
  return values;
}

void add_gather_nd(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = any_solid(s);
  const Shape data = g.shape(x);
  const int64_t batch = data.size() > 1 && s.rng().chance(0.4) ? 1 : 0;
  const int64_t depth = s.rng().range(1, static_cast<int64_t>(data.size()) - batch);
  Shape shape(data.begin(), data.begin() + batch);
  shape.push_back(s.rng().range(1, 9));
  const int64_t count = element_count(shape);
  shape.push_back(depth);
  const ValueId indices =
      s.integers(shape, tuples(s, count, data, static_cast<size_t>(batch), static_cast<size_t>(depth)));
  s.keep(g.emit(Op::kGatherNd, {x, indices}, {{"batch_dims", batch}}));
}

// A product with weights of few bits, which may have another reader.
void add_packed_product(State& s) {
  for (const Op needed : {Op::kDot, Op::kMul, Op::kTranspose}) {
    if (!s.allows(needed)) return;
  }
  ir::Builder& g = s.builder();
  const int64_t rows = s.extent(), n = s.extent(), k = s.extent(), bits = s.rng().pick(std::vector<int64_t>{2, 4, 8});
  const int64_t block = s.rng().pick(std::vector<int64_t>{16, 32}), pitch = (k * bits + 31) / 32;
  if (rows * k == 0 || n * k == 0) return;
  Tensor words(DType::kU32, {n, pitch});
  for (uint32_t& word : words.mutable_values<uint32_t>()) word = static_cast<uint32_t>(s.rng().range(0, UINT32_MAX));
  const Shape blocks = {n, (k + block - 1) / block};
  std::vector<ValueId> operands = {g.constant(std::move(words)), s.random_value(DType::kF32, blocks)};
  if (s.rng().chance(0.5)) operands.push_back(s.random_value(DType::kF32, blocks));
  const ValueId scaled =
      g.emit(Op::kDequantize, std::move(operands),
             {{"bits", bits}, {"block", block}, {"k", k}, {"zero", int64_t{1} << (bits - 1)}, {"dtype", DType::kF32}});
  const ValueId w = g.binary(Op::kMul, scaled, 1.0 / 256);
  if (s.rng().chance(0.3)) s.keep(w);
  const bool scales_inside = s.rng().chance(0.3);
  const ValueId y = g.matmul(s.random_value(DType::kF32, {rows, k}), g.transpose(scales_inside ? w : scaled, {1, 0}));
  s.keep(scales_inside ? y : g.binary(Op::kMul, y, 1.0 / 256));
}

static std::string reduction_for(State& s, DType dtype) {
  static const std::vector<std::string> kinds = {"none", "add", "max", "min"};
  return dtype == DType::kBool ? "none" : s.rng().pick(kinds);
}

void add_scatter_elements(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = any_solid(s);
  const int64_t dim = any_dim(s, x);
  Shape shape = g.shape(x);
  const int64_t extent = shape[static_cast<size_t>(dim)];
  for (int64_t& e : shape) e = s.rng().range(1, e);
  const ValueId updates = s.random_value(g.dtype(x), shape);
  s.keep(g.emit(Op::kScatterElements, {x, s.random_indices(shape, extent), updates},
                {{"dim", dim}, {"reduction", reduction_for(s, g.dtype(x))}}));
}

void add_scatter_nd(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = any_solid(s);
  const Shape data = g.shape(x);
  const int64_t depth = s.rng().range(1, static_cast<int64_t>(data.size())), count = s.rng().range(1, 7);
  const ValueId indices = s.integers({count, depth}, tuples(s, count, data, 0, static_cast<size_t>(depth)));
  Shape shape = {count};
  shape.insert(shape.end(), data.begin() + depth, data.end());
  const ValueId updates = s.random_value(g.dtype(x), shape);
  s.keep(g.emit(Op::kScatterNd, {x, indices, updates}, {{"reduction", reduction_for(s, g.dtype(x))}}));
}

void add_dot(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = s.any_float();
  if (g.rank(x) == 0) return;
  const int64_t depth = g.shape(x).back();
  const int64_t columns = s.rng().chance(0.7) ? s.extent() : s.rng().range(1, 70);
  switch (s.rng().range(0, 3)) {
    case 0: {  // batched against another value with the batch of x
      Shape shape = g.shape(x);
      if (shape.size() < 2) return;
      shape[shape.size() - 2] = depth;
      shape.back() = columns;
      if (s.fits(shape)) s.keep(g.matmul(x, s.random_value(g.dtype(x), shape)));
      return;
    }
    case 1: {  // any contracted dimension, weights transposed
      const int64_t dim = any_dim(s, x);
      const ValueId w = s.random_value(g.dtype(x), {columns, g.shape(x)[static_cast<size_t>(dim)]});
      s.keep(g.emit(
          Op::kDot, {x, w},
          {{"lhs_batch", Ints{}}, {"rhs_batch", Ints{}}, {"lhs_contract", Ints{dim}}, {"rhs_contract", Ints{1}}}));
      return;
    }
    default: {  // a linear layer with bias
      const ValueId product = g.matmul(x, s.random_value(g.dtype(x), {depth, columns}));
      s.keep(s.rng().chance(0.5) ? g.add(product, s.random_value(g.dtype(x), {columns})) : product);
    }
  }
}

void add_conv(State& s) {
  ir::Builder& g = s.builder();
  const auto spatial = static_cast<size_t>(s.rng().chance(0.7) ? 2 : s.rng().range(1, 3));
  ValueId x = s.any_float();
  if (static_cast<size_t>(g.rank(x)) != spatial + 2 || element_count(g.shape(x)) == 0) {
    Shape shape = {s.rng().range(1, 2), s.rng().chance(0.5) ? s.rng().range(1, 9) : 8};
    for (size_t d = 0; d < spatial; ++d) shape.push_back(s.rng().range(1, spatial == 2 ? 12 : 7));
    x = s.random_value(DType::kF32, shape);
  }
  const Shape shape = g.shape(x);
  const bool last = s.rng().chance(0.5);
  const int64_t channels = last ? shape.back() : shape[1];
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= channels; ++d) {
    if (channels % d == 0) divisors.push_back(d);
  }
  const int64_t groups = s.rng().chance(0.6) ? 1 : s.rng().chance(0.5) ? channels : s.rng().pick(divisors);
  Shape w = {groups * s.rng().range(1, groups > 1 ? 2 : 20), channels / groups};
  Ints strides, low, high, dilations, lhs_dilations;
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t extent = shape[last ? d + 1 : d + 2];
    w.push_back(s.rng().range(1, 3));
    strides.push_back(s.rng().chance(0.3) ? s.rng().range(2, 3) : 1);
    dilations.push_back(s.rng().chance(0.2) ? 2 : 1);
    lhs_dilations.push_back(s.rng().chance(0.08) ? 2 : 1);
    const int64_t reach = (w.back() - 1) * dilations.back() + 1;
    low.push_back(s.rng().range(0, reach - 1));
    high.push_back(s.rng().range(0, reach - 1));
    if ((extent - 1) * lhs_dilations.back() + 1 + low.back() + high.back() < reach) return;
  }
  s.keep(g.emit(Op::kConv, {x, s.random_value(g.dtype(x), w)},
                {{"strides", strides},
                 {"low", low},
                 {"high", high},
                 {"dilations", dilations},
                 {"lhs_dilations", lhs_dilations},
                 {"groups", groups},
                 {"layout", last ? "nhwc" : "nchw"}}));
}

void add_iota(State& s) {
  static const std::vector<DType> dtypes = {DType::kF32, DType::kI64, DType::kI32};
  const Shape shape = s.shape(3);
  if (shape.empty()) return;
  s.keep(s.builder().iota(s.rng().pick(dtypes), shape, s.rng().range(0, static_cast<int64_t>(shape.size()) - 1)));
}

// state = tanh(state * invariant), with every state stacked; now and then it stops early.
void add_loop(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = s.any_float();
  const ir::TensorType type = g.type(x);
  auto body = std::make_shared<ir::Graph>();
  ir::Builder b(*body);
  const ValueId iteration = body->parameter("i", {DType::kI64, {}});
  const ValueId condition = body->parameter("go", {DType::kBool, {}});
  const ValueId state = body->parameter("state", type);
  const ValueId factor = body->parameter("factor", type);
  const ValueId next = b.unary(Op::kTanh, b.mul(state, factor));
  const ValueId limit = b.emit(Op::kLt, {iteration, b.scalar(DType::kI64, static_cast<double>(s.rng().range(0, 4)))});
  body->output("go", s.rng().chance(0.5) ? limit : condition);
  body->output("state", next);
  body->output("slice", b.add(next, state));
  const int64_t trip = s.rng().range(1, 4);
  const auto results = g.emit_all(Op::kLoop,
                                  {g.scalar(DType::kI64, static_cast<double>(trip)), g.scalar(DType::kBool, 1), x,
                                   s.random_value(type.dtype, type.shape)},
                                  {{"body", std::shared_ptr<const ir::Graph>(body)},
                                   {"states", int64_t{1}},
                                   {"scans", int64_t{1}},
                                   {"trip", trip}});
  for (ValueId v : results) s.keep(v);
}

void add_if(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = s.any_float();
  const auto branch = [&](Op op) {
    auto body = std::make_shared<ir::Graph>();
    ir::Builder b(*body);
    const ValueId p = body->parameter("x", g.type(x));
    body->output("y", b.binary(op, p, b.unary(Op::kSin, p)));
    return std::shared_ptr<const ir::Graph>(body);
  };
  const ValueId condition = s.random_value(DType::kBool, {});
  s.keep(g.emit(Op::kIf, {condition, x}, {{"then", branch(Op::kAdd)}, {"else", branch(Op::kMul)}}));
}

}  // namespace heddle::fuzz
