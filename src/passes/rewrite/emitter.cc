#include "passes/rewrite/emitter.h"

#include <algorithm>
#include <numeric>

#include "ir/analysis/decisions.h"
#include "ir/reference/scalar.h"

namespace heddle::passes {
namespace {

// Rules that feed each other end in few steps; the bound is against one that does not.
constexpr int kMaxDepth = 64;
// Larger constants are weights, not scalars in disguise.
constexpr int64_t kMaxSplatSearch = 1 << 16;

}  // namespace

RuleTable::RuleTable(std::initializer_list<std::span<const Rule>> families) {
  for (const auto& family : families) {
    for (const Rule& rule : family) rules_[static_cast<size_t>(rule.op)].push_back(rule);
  }
}

ValueId Emitter::emit(Op op, std::vector<ValueId> inputs, Attrs attrs) {
  if (depth_ < kMaxDepth) {
    ++depth_;
    for (const Rule& rule : rules_.of(op)) {
      if (const auto value = rule.apply({*this, op, inputs, attrs})) {
        --depth_;
        return *value;
      }
    }
    --depth_;
  }
  return rewriter_.emit(op, std::move(inputs), std::move(attrs));
}

std::optional<double> Emitter::splat(ValueId v) {
  const Node* node = &def(v);
  while (node->op == Op::kBroadcast || node->op == Op::kReshape) node = &def(node->inputs[0]);
  if (node->op != Op::kConstant) return std::nullopt;
  const Tensor& value = node->attrs.tensor("value");
  return value.size() <= kMaxSplatSearch ? ir::splat_of(value) : std::nullopt;
}

bool Emitter::is_constant(ValueId v) {
  return is(v, Op::kConstant) || (is(v, Op::kBroadcast) && is(def(v).inputs[0], Op::kConstant));
}

ValueId Emitter::full_like(ValueId like, double value) {
  const ValueId scalar = constant(ir::splat(dtype(like), {}, value));
  return broadcast(scalar, Shape(shape(like)), {});
}

ValueId Emitter::cast(ValueId x, DType to) {
  return dtype(x) == to ? x : emit(Op::kCast, {x}, {{"to", to}});
}

ValueId Emitter::reshape(ValueId x, Shape to) {
  return shape(x) == to ? x : emit(Op::kReshape, {x}, {{"shape", std::move(to)}});
}

ValueId Emitter::transpose(ValueId x, Ints perm) {
  return perm == counting(perm.size()) ? x : emit(Op::kTranspose, {x}, {{"perm", std::move(perm)}});
}

ValueId Emitter::broadcast(ValueId x, Shape to, Ints dims) {
  if (shape(x) == to) return x;
  return emit(Op::kBroadcast, {x}, {{"shape", std::move(to)}, {"dims", std::move(dims)}});
}

ValueId Emitter::slice(ValueId x, Ints starts, Ints limits, Ints strides) {
  return emit(Op::kSlice, {x},
              {{"starts", std::move(starts)}, {"limits", std::move(limits)}, {"strides", std::move(strides)}});
}

ir::Graph apply_rules(const ir::Graph& graph, const RuleTable& rules) {
  ir::Rewriter rewriter(graph);
  Emitter emitter(rewriter, rules);
  const std::vector<bool> feeds = ir::feed_decisions(graph);
  return rewriter.run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.outputs.size() != 1) return std::nullopt;
    emitter.set_feeds_decision(feeds[node.outputs[0]]);
    return std::vector<ValueId>{emitter.emit(node.op, r(node.inputs), node.attrs)};
  });
}

Ints counting(size_t count) {
  Ints values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

Ints inverse(const Ints& perm) {
  Ints result(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) result[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return result;
}

int64_t index_of(const Ints& list, int64_t value) {
  const auto at = std::find(list.begin(), list.end(), value);
  return at == list.end() ? -1 : at - list.begin();
}

}  // namespace heddle::passes
