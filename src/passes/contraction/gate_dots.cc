#include "passes/contraction/gate_dots.h"

#include <cstring>
#include <map>

#include "ir/analysis/gated_product.h"
#include "ir/builder.h"
#include "ir/rewrite.h"
#include "passes/contraction/join_columns.h"

namespace heddle::passes {
namespace {

using ir::GateCandidate;
using ir::kGateColumns;

// So many elements of a vector.
Tensor part_of(const Tensor& vector, int64_t first, int64_t count) {
  Tensor part(vector.dtype(), {count});
  const size_t element = size_of(vector.dtype());
  std::memcpy(part.mutable_data(), static_cast<const uint8_t*>(vector.data()) + static_cast<size_t>(first) * element,
              static_cast<size_t>(count) * element);
  return part;
}

class Gater {
 public:
  explicit Gater(const ir::Graph& graph) : graph_(graph) {
    for (GateCandidate& candidate : ir::find_gate_candidates(graph)) {
      if (candidate.refused.empty()) at_.emplace(candidate.meeting.at(), std::move(candidate));
    }
  }

  ir::Graph run() {
    return ir::Rewriter(graph_).run([this](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
      const auto found = at_.find(graph_.value(node.outputs[0]).producer);
      if (found == at_.end()) return std::nullopt;
      return std::vector<ValueId>{make(r, found->second)};
    });
  }

 private:
  ValueId make(ir::Rewriter& r, const GateCandidate& c) const {
    const Node& dot = graph_.node(c.dots[0]);
    for (const NodeId id : c.dots) r.also_from(graph_.node(id));
    for (const NodeId id : c.shared) r.also_from(graph_.node(id));
    for (const NodeId id : c.meeting.nodes) r.also_from(graph_.node(id));
    ir::Builder b(r.target());
    b.set_origins(r.origins());
    const size_t dim = dot.attrs.ints("rhs_contract")[0] == 0 ? 1 : 0;
    Shape half = graph_.shape(dot.outputs[0]);
    if (c.is_split()) half.back() /= 2;
    // The columns of both matrices alternate in pieces of kGateColumns.
    std::vector<WeightColumns> turns;
    for (int64_t at = 0; at < half.back(); at += kGateColumns) {
      turns.push_back({dot.inputs[1], at, kGateColumns});
      turns.push_back({graph_.node(c.dots[1]).inputs[1], at + (c.is_split() ? half.back() : 0), kGateColumns});
    }
    const ValueId weights = join_columns(r, graph_, turns, dim);
    const ValueId sums = r.emit(Op::kDot, {r(dot.inputs[0]), weights}, dot.attrs);
    Shape parts = half;
    parts.back() /= kGateColumns;
    parts.insert(parts.end(), {2, kGateColumns});
    const ValueId apart = b.reshape(sums, parts);
    ValueId last = 0;
    std::map<ValueId, ValueId> made;
    for (int64_t i = 0; i < 2; ++i) {
      const auto which = static_cast<size_t>(i);
      const auto side = static_cast<int64_t>(parts.size()) - 2;
      const ValueId own = b.reshape(b.slice_dim(apart, side, i, i + 1), half);
      made[c.values[which]] = c.is_split() ? shared(r, b, c, i, own) : own;
    }
    for (const NodeId id : c.meeting.nodes) {
      const Node& node = graph_.node(id);
      last = compute(r, node, [&](ValueId v) { return made.contains(v) ? made.at(v) : r(v); });
      made[node.outputs[0]] = last;
    }
    return last;
  }

  // What nodes between a product and its halves make of one of these.
  ValueId shared(ir::Rewriter& r, ir::Builder& b, const GateCandidate& c, int64_t half, ValueId sums) const {
    std::map<ValueId, ValueId> made = {{graph_.node(c.dots[0]).outputs[0], sums}};
    const int64_t columns = r.target().shape(sums).back();
    ValueId value = sums;
    for (const NodeId id : c.shared) {
      const Node& node = graph_.node(id);
      if (node.op == Op::kSlice) continue;
      value =
          compute(r, node, [&](ValueId v) { return made.contains(v) ? made.at(v) : half_of(r, b, v, half, columns); });
      made[node.outputs[0]] = value;
    }
    return value;
  }

  // Half of the columns of a value. Of a broadcast, what is broadcast to them.
  ValueId half_of(ir::Rewriter& r, ir::Builder& b, ValueId v, int64_t half, int64_t columns) const {
    const Shape& whole = graph_.shape(v);
    const auto last = static_cast<int64_t>(whole.size()) - 1;
    const Node& node = graph_.producer(v);
    if (node.op != Op::kBroadcast) return b.slice_dim(r(v), last, half * columns, (half + 1) * columns);
    Shape shape = whole;
    shape.back() = columns;
    const auto& dims = node.attrs.ints("dims");
    ValueId small = r(node.inputs[0]);
    if (!dims.empty() && dims.back() == last && graph_.shape(node.inputs[0]).back() != 1) {
      const auto own = static_cast<int64_t>(dims.size()) - 1;
      const Tensor* constant = graph_.constant_of(node.inputs[0]);
      small = constant != nullptr && dims.size() == 1 ? r.constant(part_of(*constant, half * columns, columns))
                                                      : b.slice_dim(small, own, half * columns, (half + 1) * columns);
    }
    return b.broadcast(small, shape, dims);
  }

  template <typename Operand>
  static ValueId compute(ir::Rewriter& r, const Node& node, const Operand& operand) {
    std::vector<ValueId> inputs;
    for (const ValueId v : node.inputs) inputs.push_back(operand(v));
    return r.emit(node.op, inputs, node.attrs);
  }

  const ir::Graph& graph_;
  std::map<NodeId, GateCandidate> at_;  // by where it meets
};

}  // namespace

ir::Graph gate_dots(const ir::Graph& graph, const PassContext&) {
  return Gater(graph).run();
}

}  // namespace heddle::passes
