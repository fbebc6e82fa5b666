#include <algorithm>
#include <set>

#include "passes/fusion/context.h"

namespace heddle::passes {
namespace {

using Role = FusionContext::Role;

// What becomes of the rows that are gathered of one image, whose channels were moved behind its pixels.
class GatheredRows {
 public:
  GatheredRows(const FusionContext& context, NodeId transpose)
      : c_(context), transpose_(transpose), row_(row_of(result_of(transpose))) {
    walk(
        transpose,
        [&](NodeId user) { return c_.graph.node(user).op == Op::kReshape && row_of(result_of(user)) == row_; },
        [&](NodeId from, NodeId user) {
          if (!gathers_rows(from, user)) return;
          entries_.insert({from, user});
          gathered_ += element_count(c_.graph.shape(result_of(user)));
        });
    for (const auto& [from, gather] : std::set(entries_)) {
      walk(
          gather, [&](NodeId user) { return carries_rows(user); },
          [&](NodeId node, NodeId user) {
            if (c_.graph.node(user).op != Op::kTranspose || keeps_columns(c_.graph, c_.graph.node(user))) return;
            if (exits_.insert({node, user}).second) stored_ += bytes(result_of(node));
          });
    }
  }

  // Seconds that vectors of a row save, less what storing the image and the results in this order takes.
  double saved(const Target& target) const {
    const auto lanes = static_cast<double>(target.cpu.lanes_f32());
    if (entries_.empty() || row_ < target.cpu.lanes_f32()) return 0;
    const double alone =
        static_cast<double>(gathered_) * target.cpu.model.access_cycles * (1 - 1 / lanes) / (target.cpu.ghz * 1e9);
    return alone - 2 * (bytes(result_of(transpose_)) + stored_) / target.copy_bytes_per_second() -
           2 * target.boundary_seconds();
  }

  // Edges between the kernels.
  std::set<std::pair<NodeId, NodeId>> edges() const {
    std::set<std::pair<NodeId, NodeId>> all = entries_;
    all.insert(exits_.begin(), exits_.end());
    return all;
  }
  int64_t row() const { return row_; }

 private:
  ValueId result_of(NodeId id) const { return c_.graph.node(id).outputs[0]; }
  double bytes(ValueId v) const {
    return static_cast<double>(element_count(c_.graph.shape(v))) * static_cast<double>(size_of(c_.graph.dtype(v)));
  }
  // Its elements along the innermost dimension.
  int64_t row_of(ValueId v) const {
    const Shape& shape = c_.graph.shape(v);
    const size_t last = innermost(shape);
    return last < shape.size() ? shape[last] : 1;
  }

  // Whether the result of a node has rows where its operand has them.
  bool carries_rows(NodeId id) const {
    const Node& node = c_.graph.node(id);
    if (row_of(node.outputs[0]) != row_) return false;
    if (node.op == Op::kTranspose) return keeps_columns(c_.graph, node);
    if (node.op == Op::kReduce) {
      const auto row = static_cast<int64_t>(innermost(c_.graph.shape(node.inputs[0])));
      const ir::Ints& dims = node.attrs.ints("dims");
      return std::find(dims.begin(), dims.end(), row) == dims.end();
    }
    return node.op == Op::kReshape || ir::is_elementwise(node.op);
  }

  // Whether a node picks whole rows of what another one makes.
  bool gathers_rows(NodeId from, NodeId id) const {
    const Node& node = c_.graph.node(id);
    if (node.inputs[0] != result_of(from)) return false;
    const auto rank = static_cast<int64_t>(c_.graph.shape(node.inputs[0]).size());
    if (node.op == Op::kGather) return node.attrs.integer("dim") + 1 < rank;
    if (node.op != Op::kGatherNd) return false;
    return node.attrs.integer("batch_dims") + c_.graph.shape(node.inputs[1]).back() < rank;
  }

  // All that follows a node through those that `passes`; `visit` sees every edge to a memory-bound one.
  template <typename Passes, typename Visit>
  void walk(NodeId first, const Passes& passes, const Visit& visit) const {
    std::vector<NodeId> open{first};
    std::set<NodeId> seen;
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      for (const ValueId v : c_.graph.node(id).outputs) {
        for (const NodeId user : c_.users[v]) {
          if (c_.role[user] != Role::kMemory) continue;
          visit(id, user);
          if (passes(user) && seen.insert(user).second) open.push_back(user);
        }
      }
    }
  }

  const FusionContext& c_;
  NodeId transpose_;
  int64_t row_;
  std::set<std::pair<NodeId, NodeId>> entries_, exits_;
  int64_t gathered_ = 0;
  double stored_ = 0;
};

}  // namespace

void keep_gathered_rows_apart(FusionContext& context, const Target& target) {
  if (!target.traits().gathers_rows) return;
  for (NodeId id = 0; id < context.graph.nodes().size(); ++id) {
    const Node& node = context.graph.node(id);
    if (node.op != Op::kTranspose || context.role[id] != Role::kMemory || keeps_columns(context.graph, node)) continue;
    const GatheredRows rows(context, id);
    const double saved = rows.saved(target);
    if (saved <= 0) continue;
    for (const auto& edge : rows.edges()) {
      context.apart[edge] = fmt::format("vectors of {} neighbouring channels are gathered: about {:.3g} us less",
                                        rows.row(), saved * 1e6);
    }
  }
}

}  // namespace heddle::passes
