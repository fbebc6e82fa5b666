#include "attention_chains.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "passes/fusion/fusion.h"
#include "schedule/attention/attention.h"
#include "schedule/attention/form.h"

namespace heddle::testing {
namespace {

using ir::Ints;
using ir::Op;
using ir::ValueId;
using Chain = AttentionChain;

class Writer {
 public:
  explicit Writer(const Chain& chain) : c_(chain), b_(graph_) {}

  ir::Graph run() {
    make_operands();
    ValueId x = scores();
    if (c_.casts) x = b_.cast(x, DType::kF32);
    x = changed(x);
    ValueId o = results(x);
    o = b_.cast(b_.reshape(b_.transpose(o, {0, 2, 1, 3}), {c_.batch, c_.m, c_.heads * c_.width}), c_.type);
    graph_.output("y", o);
    return std::move(graph_);
  }

 private:
  ValueId input(const std::string& name, DType type, Shape shape) {
    return graph_.parameter(name, {type, std::move(shape)});
  }
  // [b, n, h * d] or a part of it as [b, n, h, d].
  ValueId split(ValueId x, int64_t heads) {
    const Shape shape = b_.shape(x);
    return b_.reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
  }
  ValueId normalized(ValueId x) {
    const ValueId wide = b_.cast(x, DType::kF32);
    const ValueId mean = b_.mean(b_.mul(wide, wide), {3}, true);
    return b_.cast(b_.mul(wide, b_.unary(Op::kRsqrt, b_.binary(Op::kAdd, mean, 0.5))), c_.type);
  }

  void make_operands() {
    const int64_t sizes[] = {c_.heads * c_.depth, c_.groups * c_.depth, c_.groups * c_.width};
    const int64_t lines[] = {c_.m, c_.n, c_.n}, heads[] = {c_.heads, c_.groups, c_.groups};
    ValueId values[3];
    ValueId all = c_.packed ? input("qkv", c_.type, {c_.batch, c_.m, 3 * sizes[0]}) : 0;
    for (int i = 0; i < 3; ++i) {
      const char* names[] = {"q", "k", "v"};
      const ValueId flat = c_.packed ? b_.slice_dim(all, 2, i * sizes[0], (i + 1) * sizes[0])
                                     : input(names[i], c_.type, {c_.batch, lines[i], sizes[i]});
      values[i] = split(flat, heads[i]);
      if (c_.norm && i < 2) values[i] = normalized(values[i]);
    }
    q_ = values[0], k_ = values[1], v_ = values[2];
    const double root = std::sqrt(factor());
    if (c_.scale == Chain::Scale::kQuery) q_ = b_.binary(Op::kMul, q_, factor());
    if (c_.scale == Chain::Scale::kBoth) q_ = b_.binary(Op::kMul, q_, root), k_ = b_.binary(Op::kMul, k_, root);
    q_ = b_.transpose(q_, {0, 2, 1, 3});
    v_ = b_.transpose(v_, {0, 2, 1, 3});
  }
  double factor() const { return 1.25 / std::sqrt(static_cast<double>(c_.depth)); }

  // [b, g, n, d] for all heads of queries.
  ValueId expanded(ValueId x) {
    const Shape s = b_.shape(x);
    const int64_t repeats = c_.heads / c_.groups;
    if (repeats == 1) return x;
    return b_.reshape(b_.broadcast_to(b_.reshape(x, {s[0], s[1], 1, s[2], s[3]}), {s[0], s[1], repeats, s[2], s[3]}),
                      {s[0], c_.heads, s[2], s[3]});
  }
  ValueId dot(ValueId lhs, ValueId rhs, int64_t rhs_contract) {
    const auto rank = static_cast<int64_t>(b_.shape(lhs).size());
    return b_.emit(Op::kDot, {lhs, rhs},
                   {{"lhs_batch", Ints{0, 1}},
                    {"rhs_batch", Ints{0, 1}},
                    {"lhs_contract", Ints{rank - 1}},
                    {"rhs_contract", Ints{rhs_contract}}});
  }

  ValueId scores() {
    const int64_t repeats = c_.heads / c_.groups;
    ValueId s;
    if (repeats > 1 && c_.shared == Chain::Groups::kFreeDims) {
      const ValueId q = b_.reshape(q_, {c_.batch, c_.groups, repeats, c_.m, c_.depth});
      s = dot(q, b_.transpose(k_, {0, 2, 1, 3}), 3);
    } else if (repeats > 1 && c_.shared == Chain::Groups::kBroadcast) {
      const ValueId q = b_.reshape(q_, {c_.batch, c_.groups, repeats, c_.m, c_.depth});
      const ValueId k = b_.reshape(b_.transpose(k_, {0, 2, 3, 1}), {c_.batch, c_.groups, 1, c_.depth, c_.n});
      s = b_.matmul(q, k);
    } else {
      s = b_.matmul(q_, keys());
    }
    s = b_.reshape(s, {c_.batch, c_.heads, c_.m, c_.n});
    if (c_.scale == Chain::Scale::kScores) s = b_.binary(Op::kMul, s, factor());
    if (c_.scale == Chain::Scale::kQuotient) s = b_.binary(Op::kDiv, s, 1 / factor());
    return s;
  }
  // [b, h, d, n]
  ValueId keys() {
    if (c_.keys == Chain::Keys::kSequence && c_.heads == c_.groups) return b_.transpose(k_, {0, 2, 3, 1});
    const ValueId k = expanded(b_.transpose(k_, {0, 2, 1, 3}));
    if (c_.keys != Chain::Keys::kFlat) return b_.transpose(k, {0, 1, 3, 2});
    const ValueId flat = b_.transpose(b_.reshape(k, {c_.batch * c_.heads, c_.n, c_.depth}), {0, 2, 1});
    return b_.reshape(flat, {c_.batch, c_.heads, c_.depth, c_.n});
  }

  // ---- between product and softmax

  ValueId changed(ValueId x) {
    const DType type = b_.dtype(x);
    if (c_.cap) x = b_.binary(Op::kMul, b_.unary(Op::kTanh, b_.binary(Op::kDiv, x, 3.0)), 3.0);
    if (c_.bias) x = b_.add(x, input("bias", type, {1, c_.heads, c_.m, c_.n}));
    if (c_.slopes) {
      const ValueId distance = b_.cast(b_.sub(positions(0), positions(1)), type);
      x = b_.add(x, b_.mul(input("slopes", type, {1, c_.heads, 1, 1}), distance));
    }
    if (c_.windows) {
      x = b_.reshape(x, {1, c_.batch, c_.heads, c_.m, c_.n});
      x = b_.add(x, input("windows", type, {1, c_.batch, 1, c_.m, c_.n}));
      x = b_.reshape(x, {c_.batch, c_.heads, c_.m, c_.n});
    }
    return masked(x);
  }
  ValueId positions(int64_t dim) {  // of rows or keys
    return b_.iota(DType::kI64, {1, 1, dim == 0 ? c_.m : 1, dim == 0 ? 1 : c_.n}, dim == 0 ? 2 : 3);
  }
  ValueId causal() {
    const ValueId rows = b_.binary(Op::kAdd, positions(0), static_cast<double>(std::max<int64_t>(0, c_.n - c_.m)));
    return b_.binary(Op::kLe, positions(1), rows);
  }
  ValueId masked(ValueId x) {
    const DType type = b_.dtype(x);
    const double least = type == DType::kF32 ? -std::numeric_limits<float>::max() : -3e4;
    const auto number = [&](double value) { return b_.scalar(type, value); };
    const double infinite = -std::numeric_limits<double>::infinity();
    switch (c_.mask) {
      case Chain::Mask::kNone:
        return x;
      case Chain::Mask::kAddPadding:
      case Chain::Mask::kAddMatrix: {
        const bool matrix = c_.mask == Chain::Mask::kAddMatrix;
        return b_.add(x, input("mask", type, {c_.batch, 1, matrix ? c_.m : 1, c_.n}));
      }
      case Chain::Mask::kSelectMin:
        return b_.select(input("mask", DType::kBool, {c_.batch, 1, c_.m, c_.n}), x, number(least));
      case Chain::Mask::kSelectInf:
        return b_.select(input("mask", DType::kBool, {c_.batch, 1, c_.m, c_.n}), x, number(infinite));
      case Chain::Mask::kSelectThenAdd:
        return b_.add(x, b_.select(input("mask", DType::kBool, {c_.batch, 1, 1, c_.n}), number(0), number(least)));
      case Chain::Mask::kCausal:
        return b_.select(causal(), x, number(infinite));
      case Chain::Mask::kCausalMin: {
        const ValueId padding = input("mask", DType::kBool, {c_.batch, 1, 1, c_.n});
        return b_.select(b_.binary(Op::kAnd, causal(), padding), x, number(least));
      }
      case Chain::Mask::kAddCausal:
        return b_.add(x, b_.select(causal(), number(0), number(infinite)));
      case Chain::Mask::kAddCausalMin:
        return b_.add(x, b_.select(causal(), number(0), number(least)));
      case Chain::Mask::kTriangle: {
        Tensor lower(DType::kF32, {1, 1, c_.m, c_.n});
        auto* at = static_cast<float*>(lower.mutable_data());
        for (int64_t i = 0; i < c_.m * c_.n; ++i) at[i] = i % c_.n <= i / c_.n ? 1.0F : 0.0F;
        const ValueId seen = b_.binary(Op::kNe, b_.constant(std::move(lower)), 0.0);
        return b_.select(seen, x, number(least));
      }
      case Chain::Mask::kRows:
        return b_.select(input("mask", DType::kBool, {c_.batch, 1, c_.m, 1}), x, number(least));
      case Chain::Mask::kLengths: {
        const ValueId lengths = input("lengths", DType::kI64, {c_.batch, 1, 1, 1});
        const ValueId limits = b_.add(b_.binary(Op::kSub, lengths, static_cast<double>(c_.m)), positions(0));
        return b_.select(b_.binary(Op::kLe, positions(1), limits), x, number(infinite));
      }
    }
    return x;
  }

  // ---- softmax and second product

  ValueId exponentials(ValueId x, ValueId* top) {
    *top = b_.reduce("max", x, {3}, true);
    if (c_.softmax == Chain::Softmax::kUnshifted) return b_.unary(Op::kExp, x);
    ValueId difference = b_.sub(x, *top);
    if (c_.scale == Chain::Scale::kBehindMaximum) difference = b_.binary(Op::kMul, difference, factor());
    return b_.unary(Op::kExp, difference);
  }
  ValueId results(ValueId x) {
    const ValueId bare = x;
    if (c_.sink) {
      const ValueId sinks =
          b_.broadcast_to(input("sinks", b_.dtype(x), {1, c_.heads, 1, 1}), {c_.batch, c_.heads, c_.m, 1});
      const std::array parts = {x, sinks};
      x = b_.concat(parts, 3);
    }
    ValueId top;
    const ValueId e = exponentials(x, &top);
    const ValueId sum = b_.reduce("sum", e, {3}, true);
    const auto one = [&] { return b_.full(b_.dtype(sum), b_.shape(sum), 1); };
    ValueId p = e;
    switch (c_.softmax) {
      case Chain::Softmax::kBehind:
      case Chain::Softmax::kBehindFactor: {
        const ValueId o = product(e);
        const ValueId rows = b_.cast(sum, b_.dtype(o));
        return c_.softmax == Chain::Softmax::kBehind ? b_.div(o, rows)
                                                     : b_.mul(o, b_.cast(b_.div(one(), sum), c_.type));
      }
      case Chain::Softmax::kReciprocal:
        p = b_.mul(e, b_.div(one(), sum));
        break;
      case Chain::Softmax::kLog:
        p = b_.unary(Op::kExp, b_.sub(b_.sub(x, top), b_.unary(Op::kLog, sum)));
        break;
      default:
        p = b_.div(e, sum);
    }
    if (c_.sink) p = b_.slice_dim(p, 3, 0, c_.n);
    return product(guarded(p, bare, top));
  }
  ValueId guarded(ValueId p, ValueId x, ValueId top) {
    const ValueId zero = b_.scalar(b_.dtype(p), 0);
    const ValueId hidden = b_.scalar(b_.dtype(p), -std::numeric_limits<double>::infinity());
    switch (c_.softmax) {
      case Chain::Softmax::kIsNan:
        return b_.select(b_.unary(Op::kIsNan, p), zero, p);
      case Chain::Softmax::kNotEqual:
        return b_.select(b_.binary(Op::kNe, p, p), zero, p);
      case Chain::Softmax::kAllHidden:
        return b_.select(b_.reduce("all", b_.binary(Op::kEq, x, hidden), {3}, true), zero, p);
      case Chain::Softmax::kMaxHidden:
        return b_.select(b_.binary(Op::kEq, top, hidden), zero, p);
      default:
        return p;
    }
  }
  ValueId product(ValueId p) {
    p = b_.cast(p, c_.type);
    const int64_t repeats = c_.heads / c_.groups;
    if (repeats > 1 && c_.shared != Chain::Groups::kExpand) {
      p = b_.reshape(p, {c_.batch, c_.groups, repeats, c_.m, c_.n});
      const ValueId o = c_.shared == Chain::Groups::kFreeDims
                            ? dot(p, v_, 2)
                            : b_.matmul(p, b_.reshape(v_, {c_.batch, c_.groups, 1, c_.n, c_.width}));
      return b_.reshape(o, {c_.batch, c_.heads, c_.m, c_.width});
    }
    const ValueId v = expanded(v_);
    if (!c_.swapped) return b_.matmul(p, v);
    const ValueId o = b_.matmul(b_.transpose(v, {0, 1, 3, 2}), b_.transpose(p, {0, 1, 3, 2}));
    return b_.transpose(o, {0, 1, 3, 2});
  }

  const Chain& c_;
  ir::Graph graph_;
  ir::Builder b_;
  ValueId q_ = 0, k_ = 0, v_ = 0;
};

}  // namespace

std::string AttentionChain::text() const {
  return fmt::format("{} {}x{}({})x{}x{}x{}x{} keys {} scale {} shared {} mask {} softmax {}{}{}{}{}{}{}{}{}{}",
                     to_string(type), batch, heads, groups, m, n, depth, width, static_cast<int>(keys),
                     static_cast<int>(scale), static_cast<int>(shared), static_cast<int>(mask),
                     static_cast<int>(softmax), casts ? " casts" : "", packed ? " packed" : "", norm ? " norm" : "",
                     cap ? " cap" : "", bias ? " bias" : "", slopes ? " slopes" : "", windows ? " windows" : "",
                     sink ? " sink" : "", swapped ? " swapped" : "");
}

ir::Graph AttentionChain::graph() const {
  return Writer(*this).run();
}

AttentionChain random_chain(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto often = [&](int one_in) { return below(one_in) == 0; };
  AttentionChain c;
  c.type = often(4) ? DType::kF32 : often(2) ? DType::kBF16 : DType::kF16;
  c.batch = 1 + below(3);
  c.groups = 1 + below(3);
  c.heads = c.groups * (often(2) ? 1 : 1 + below(4));
  c.m = often(5) ? 1 : 1 + below(20);
  c.n = 2 + below(24);
  c.depth = 8 * (1 + below(4)), c.width = often(3) ? 8 * (1 + below(4)) : c.depth;
  c.keys = static_cast<AttentionChain::Keys>(below(3));
  c.scale = static_cast<AttentionChain::Scale>(below(6));
  c.shared = static_cast<AttentionChain::Groups>(below(3));
  c.mask = static_cast<AttentionChain::Mask>(below(static_cast<int>(AttentionChain::Mask::kRows) + 1));
  c.softmax = static_cast<AttentionChain::Softmax>(below(10));
  c.casts = c.type == DType::kF32 || !often(3);
  c.norm = often(4), c.cap = often(5), c.bias = often(4), c.slopes = often(5), c.windows = often(5);
  c.swapped = often(8);
  if (often(4)) c.packed = true, c.m = c.n, c.width = c.depth, c.groups = c.heads;
  if (c.scale == AttentionChain::Scale::kBehindMaximum && c.softmax == AttentionChain::Softmax::kLog) {
    c.scale = AttentionChain::Scale::kScores;
  }
  if (c.softmax == AttentionChain::Softmax::kUnshifted && c.scale == AttentionChain::Scale::kBehindMaximum) {
    c.scale = AttentionChain::Scale::kNone;
  }
  // All keys of a row far below: without the maximum nothing is left of them.
  if (c.softmax == AttentionChain::Softmax::kUnshifted) c.mask = AttentionChain::Mask::kNone;
  return c;
}

ir::Graph optimized(const ir::Graph& graph, passes::Precision precision, const Target& target) {
  return passes::run_pipeline(graph, {target, precision});
}

ir::Grouping grouped(const ir::Graph& graph, const Target& target, bool at_any_cost) {
  passes::FusionOptions options;
  const schedule::AttentionFinder attentions(graph);
  options.find_attention = [&](ir::NodeId product, const passes::FusionOptions::MayView& may_view,
                               std::string* reason) { return attentions.find(product, may_view, reason); };
  options.can_attend = [&](const ir::Group& group, std::string* reason) {
    if (!at_any_cost) return schedule::can_attend(graph, group, target, reason);
    schedule::schedule_attention(graph, group, target);
    return true;
  };
  return passes::fuse(graph, target, options);
}

ir::Graph graph_of(const ir::Graph& graph, const ir::Group& group) {
  ir::Graph result;
  std::map<ValueId, ValueId> made;
  for (const ValueId v : group.inputs) {
    const Tensor* constant = graph.constant_of(v);
    const ir::Node& node = graph.producer(v);
    const std::string name = node.op == Op::kParameter ? node.attrs.text("name") : fmt::format("v{}", v);
    made[v] = constant != nullptr ? result.constant(*constant) : result.parameter(name, graph.type(v));
  }
  for (const ir::NodeId id : group.nodes) {
    const ir::Node& node = graph.node(id);
    std::vector<ValueId> inputs;
    for (const ValueId v : node.inputs) inputs.push_back(made.at(v));
    made[node.outputs[0]] = result.emit(node.op, std::move(inputs), node.attrs);
  }
  for (size_t i = 0; i < group.outputs.size(); ++i) result.output(fmt::format("y{}", i), made.at(group.outputs[i]));
  return result;
}

}  // namespace heddle::testing
