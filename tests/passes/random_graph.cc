#include "random_graph.h"

#include <algorithm>
#include <random>

#include "ir/builder.h"
#include "ir/reference/scalar.h"

namespace heddle::passes {
namespace {

using ir::Ints;
using ir::Op;
using ir::ValueId;

class Generator {
 public:
  Generator(uint32_t seed) : random_(seed), b_(graph_) {}

  ir::Graph run(int nodes) {
    const int64_t extents[] = {1, 2, 3, 4};
    for (int i = 0; i < 3; ++i) {
      Shape shape;
      for (int64_t d = pick(2, 4); d > 0; --d) shape.push_back(extents[pick(0, 3)]);
      if (pick(0, 40) == 0) shape[0] = 0;
      values_.push_back(graph_.parameter("p" + std::to_string(i), {DType::kF32, shape}));
    }
    for (int i = 0; i < nodes; ++i) {
      const ValueId v = step();
      if (element_count(b_.shape(v)) <= 2000) values_.push_back(v);
    }
    for (int i = 0; i < 3; ++i) graph_.output("o" + std::to_string(i), any());
    graph_.output("last", values_.back());
    return std::move(graph_);
  }

 private:
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  // Newer values more often, so that chains grow.
  ValueId any() {
    const auto size = static_cast<int64_t>(values_.size());
    return values_[static_cast<size_t>(pick(0, 1) == 0 ? pick(0, size - 1)
                                                       : pick(std::max<int64_t>(0, size - 4), size - 1))];
  }
  // A value of the shape: a known one, a constant, or a broadcast of a vector or scalar.
  ValueId like(const Shape& shape) {
    const int64_t choice = pick(0, 4);
    if (choice < 2) {
      for (int i = 0; i < 10; ++i) {
        const ValueId v = any();
        if (b_.shape(v) == shape) return v;
      }
    }
    if (choice == 2) return b_.constant(tensor(shape));
    if (choice == 3 && !shape.empty()) {
      const int64_t d = pick(0, static_cast<int64_t>(shape.size()) - 1);
      return b_.broadcast(b_.constant(tensor({shape[static_cast<size_t>(d)]})), shape, {d});
    }
    const double special[] = {0, 1, -1, 2, 0.5, 3, -0.25};
    return b_.full(DType::kF32, shape, special[pick(0, 6)]);
  }
  Tensor tensor(const Shape& shape) {
    Tensor t(DType::kF32, shape);
    for (int64_t i = 0; i < t.size(); ++i) ir::set_real(t, i, static_cast<double>(pick(-8, 8)) / 4);
    return t;
  }
  Ints permutation(size_t rank) {
    Ints perm(rank);
    for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
    std::shuffle(perm.begin(), perm.end(), random_);
    return perm;
  }

  ValueId step() {
    switch (pick(0, 15)) {
      case 0:
      case 1:
        return unary(any());
      case 2:
      case 3:
      case 4:
        return binary(any());
      case 5:
        return transpose(any());
      case 6:
        return reshape(any());
      case 7:
        return slice(any());
      case 8:
        return reduce(any());
      case 9:
        return broadcast(any());
      case 10:
        return conv(any());
      case 11:
        return window(any());
      case 12:
        return dot(any());
      case 13:
        return concat(any());
      case 14:
        return pad(any());
      default:
        return gather(any());
    }
  }

  ValueId unary(ValueId x) {
    const Op ops[] = {Op::kNeg, Op::kAbs, Op::kTanh, Op::kExp, Op::kFloor, Op::kErf, Op::kCast};
    const Op op = ops[pick(0, 6)];
    if (op == Op::kCast) return b_.cast(b_.cast(x, DType::kF64), DType::kF32);
    if (op == Op::kExp) return b_.unary(Op::kExp, b_.unary(Op::kTanh, x));
    if (op == Op::kFloor) return b_.unary(Op::kNeg, b_.unary(Op::kNeg, x));
    return b_.unary(op, x);
  }
  ValueId binary(ValueId x) {
    const Op ops[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kMax, Op::kMin, Op::kAdd, Op::kMul, Op::kDiv};
    const Op op = ops[pick(0, 7)];
    const ValueId y = like(b_.shape(x));
    if (op == Op::kDiv) {  // away from zero
      const ValueId one = b_.full(DType::kF32, b_.shape(x), 1);
      return b_.binary(Op::kDiv, x, b_.add(one, b_.unary(Op::kAbs, y)));
    }
    return pick(0, 3) == 0 ? b_.binary(op, y, x) : b_.binary(op, x, y);
  }
  ValueId transpose(ValueId x) { return b_.transpose(x, permutation(b_.shape(x).size())); }
  ValueId reshape(ValueId x) {
    Shape shape = b_.shape(x);
    switch (pick(0, 3)) {
      case 0:  // split
        for (size_t d = 0; d < shape.size(); ++d) {
          if (shape[d] % 2 != 0 || shape[d] == 0) continue;
          shape[d] /= 2;
          shape.insert(shape.begin() + static_cast<int64_t>(d), 2);
          return b_.reshape(x, shape);
        }
        return x;
      case 1:  // merge
        if (shape.size() < 2) return x;
        shape[shape.size() - 2] *= shape.back();
        shape.pop_back();
        return b_.reshape(x, shape);
      case 2:
        shape.insert(shape.begin() + pick(0, static_cast<int64_t>(shape.size())), 1);
        return shape.size() > 6 ? x : b_.reshape(x, shape);
      default:
        return b_.reshape(x, {element_count(shape)});
    }
  }
  ValueId slice(ValueId x) {
    Ints starts, limits, strides;
    for (int64_t n : b_.shape(x)) {
      starts.push_back(n == 0 ? 0 : pick(0, std::min<int64_t>(1, n - 1)));
      limits.push_back(n == 0 ? 0 : pick(starts.back() + 1, n));
      strides.push_back(pick(0, 3) == 0 ? 2 : 1);
    }
    return b_.slice(x, starts, limits, strides);
  }
  ValueId reduce(ValueId x) {
    Ints dims;
    for (int64_t d = 0; d < b_.rank(x); ++d) {
      if (pick(0, 1) == 0 && b_.shape(x)[static_cast<size_t>(d)] > 0) dims.push_back(d);
    }
    const ValueId r = b_.reduce(pick(0, 1) == 0 ? "sum" : "max", x, dims, pick(0, 1) == 0);
    return pick(0, 1) == 0 || b_.shape(r).size() != b_.shape(x).size() ? r : b_.sub(x, r);
  }
  ValueId broadcast(ValueId x) {
    Shape shape = b_.shape(x);
    Ints dims;
    Shape to;
    for (int64_t n : shape) {
      if (pick(0, 2) == 0 && to.size() + shape.size() < 7) to.push_back(pick(1, 2));
      dims.push_back(static_cast<int64_t>(to.size()));
      to.push_back(n == 1 ? pick(1, 3) : n);
    }
    return b_.broadcast(x, to, dims);
  }
  ValueId conv(ValueId x) {
    const Shape& shape = b_.shape(x);
    if (shape.size() < 3 || shape.size() > 5 || element_count(shape) == 0) return x;
    const size_t spatial = shape.size() - 2;
    const int64_t features = pick(1, 3), kernel = pick(1, 2), pad = pick(0, 1);
    Shape w(shape.size(), kernel);
    w[0] = features;
    w[1] = shape[1];
    for (int64_t n : Shape(shape.begin() + 2, shape.end())) {
      if (n + 2 * pad < kernel) return x;
    }
    const ValueId y = b_.emit(Op::kConv, {x, b_.constant(tensor(w))},
                              {{"strides", Ints(spatial, pick(1, 2))},
                               {"low", Ints(spatial, pad)},
                               {"high", Ints(spatial, pad)},
                               {"dilations", Ints(spatial, 1)},
                               {"lhs_dilations", Ints(spatial, 1)},
                               {"groups", int64_t{1}},
                               {"layout", std::string("nchw")}});
    if (pick(0, 1) == 0) return y;
    const ValueId scaled = b_.mul(y, b_.broadcast(b_.constant(tensor({features})), b_.shape(y), {1}));
    return b_.add(scaled, b_.broadcast(b_.constant(tensor({features})), b_.shape(y), {1}));
  }
  ValueId window(ValueId x) {
    const Shape& shape = b_.shape(x);
    Ints window, strides, low;
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool spatial = d >= 2 && shape[d] > 0;
      window.push_back(spatial ? pick(1, std::min<int64_t>(2, shape[d])) : 1);
      strides.push_back(spatial ? pick(1, 2) : 1);
      low.push_back(spatial && window.back() == 2 ? pick(0, 1) : 0);
    }
    if (element_count(shape) == 0) return x;
    return b_.emit(Op::kWindowReduce, {x},
                   {{"kind", std::string(pick(0, 1) == 0 ? "sum" : "max")},
                    {"window", window},
                    {"strides", strides},
                    {"low", low},
                    {"high", Ints(shape.size(), 0)},
                    {"dilations", Ints(shape.size(), 1)}});
  }
  ValueId dot(ValueId x) {
    const Shape& shape = b_.shape(x);
    if (shape.empty()) return x;
    ValueId y = pick(0, 1) == 0 && shape.size() >= 2 ? b_.matmul(x, like_transposed(x))
                                                     : b_.matmul(x, b_.constant(tensor({shape.back(), pick(1, 3)})));
    // Keeps magnitudes down over long chains.
    return b_.unary(Op::kTanh, y);
  }
  ValueId like_transposed(ValueId x) {
    Ints perm(b_.shape(x).size());
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return b_.transpose(x, perm);
  }
  ValueId concat(ValueId x) {
    if (b_.shape(x).empty()) return x;
    const ValueId parts[] = {x, like(b_.shape(x))};
    return b_.concat(parts, pick(0, b_.rank(x) - 1));
  }
  ValueId pad(ValueId x) {
    Ints low, high;
    for (int64_t d = 0; d < b_.rank(x); ++d) {
      low.push_back(pick(0, 1) * pick(0, 1));
      high.push_back(pick(0, 1) * pick(0, 1));
    }
    return b_.pad(x, b_.scalar(DType::kF32, static_cast<double>(pick(0, 1))), low, high);
  }
  ValueId gather(ValueId x) {
    if (b_.shape(x).empty() || b_.shape(x)[0] == 0) return x;
    Ints indices;
    for (int64_t i = pick(1, 3); i > 0; --i) indices.push_back(pick(-1, 0));
    return b_.gather(x, b_.ints(indices), 0);
  }

  std::mt19937 random_;
  ir::Graph graph_;
  ir::Builder b_;
  std::vector<ValueId> values_;
};

}  // namespace

ir::Graph random_graph(uint32_t seed, int nodes) {
  return Generator(seed).run(nodes);
}

}  // namespace heddle::passes
