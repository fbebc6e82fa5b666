#include "passes/fusion/join_in_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

using ir::Placement;

constexpr uint32_t kUngrouped = ~0u;

double stored_bytes(const ir::Graph& graph, ValueId v) {
  return static_cast<double>(element_count(graph.shape(v))) * static_cast<double>(size_of(graph.dtype(v)));
}

size_t dim_of(const Node& concat) {
  return static_cast<size_t>(concat.attrs.integer("dim"));
}

// A part that kernels make beside its other uses: a copy that has no other reader.
ValueId copy_of(ir::Rewriter& r, ValueId part) {
  return r.emit(Op::kCast, {r(part)}, {{"to", r.source().dtype(part)}});
}

// One graph's concatenations in place, until the groups that they lead to agree with them.
class Joins {
 public:
  Joins(const ir::Graph& graph, const PassContext& context)
      : graph_(graph),
        context_(context),
        grouping_(context.group(graph)),
        obstacles_(graph, grouping_, context.target, context.placement_obstacle) {
    for (NodeId id = 0; id < graph.nodes().size(); ++id) {
      if (graph.node(id).op == Op::kConcat && obstacles_.of_concat(id).empty()) chosen_.insert(id);
    }
  }

  ir::Graph run() {
    while (!chosen_.empty()) {
      place_parts();
      ir::Graph joined = rewrite();
      if (agree(joined)) return joined;
    }
    return graph_;
  }

 private:
  struct Part {
    ValueId value;
    bool copied;
  };

  // From the last to the first, since a concatenation may lie in a later one.
  void place_parts() {
    placed_.clear();
    parts_.clear();
    for (auto id = chosen_.rbegin(); id != chosen_.rend(); ++id) {
      const Node& node = graph_.node(*id);
      const ValueId result = node.outputs[0];
      const Shape& shape = graph_.shape(result);
      const auto outer = placed_.find(result);
      Placement place = outer != placed_.end() ? outer->second : Placement{result, shape, ir::Ints(shape.size(), 0)};
      for (const ValueId value : nested(*id, place)) {
        const bool copied =
            copied_.contains({*id, value}) || placed_.contains(value) || !obstacles_.of_part(value, *id, place).empty();
        if (!copied) placed_.emplace(value, place);
        parts_[*id].push_back({value, copied});
        place.start[dim_of(node)] += graph_.shape(value)[dim_of(node)];
      }
    }
  }

  // The parts of a concatenation, where earlier ones stand for all of theirs.
  std::vector<ValueId> nested(NodeId id, Placement place) const {
    const Node& node = graph_.node(id);
    std::vector<ValueId> parts = node.inputs;
    for (auto other = std::make_reverse_iterator(chosen_.find(id)); other != chosen_.rend(); ++other) {
      const Node& inner = graph_.node(*other);
      const ValueId whole = inner.outputs[0];
      if (dim_of(inner) != dim_of(node) || placed_.contains(whole) || copied_.contains({id, whole})) continue;
      const auto first = std::search(parts.begin(), parts.end(), inner.inputs.begin(), inner.inputs.end());
      if (first == parts.end()) continue;
      Placement at = place;
      for (auto p = parts.begin(); p != first; ++p) at.start[dim_of(node)] += graph_.shape(*p)[dim_of(node)];
      if (!obstacles_.of_part(whole, *other, at).empty()) continue;
      *first = whole;
      parts.erase(first + 1, first + static_cast<std::ptrdiff_t>(inner.inputs.size()));
    }
    return parts;
  }

  ir::Graph rewrite() const {
    ir::Rewriter rewriter(graph_);
    return rewriter.run([this](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
      const auto found = node.outputs.empty() ? parts_.end() : parts_.find(graph_.value(node.outputs[0]).producer);
      if (found == parts_.end()) return std::nullopt;
      std::vector<ValueId> inputs;
      for (const Part& part : found->second) {
        inputs.push_back(part.copied ? copy_of(r, part.value) : r(part.value));
      }
      ir::Attrs attrs = node.attrs;
      attrs.set("in_place", int64_t{1});
      return std::vector{r.emit(Op::kConcat, std::move(inputs), std::move(attrs))};
    });
  }

  // Whether all kernels can read and store what is placed. Where one cannot, a part becomes a copy, or a concatenation
  // stays as it was.
  bool agree(const ir::Graph& joined) {
    const ir::Grouping grouping = context_.group(joined);
    std::set<ValueId> refused;
    for (const ir::Group& group : grouping.groups) {
      for (const auto& [value, place] : group.placed) {
        const bool is_join = ir::is_view(joined, group) && ir::joins_in_place(joined.node(group.nodes[0]));
        if (!is_join && !context_.placement_obstacle(joined, group, value, place).empty()) refused.insert(value);
      }
    }
    if (refused.empty()) return true;
    auto source = parts_.begin();  // both in the order of the graph
    std::vector<NodeId> given_up;
    for (const Node& node : joined.nodes()) {
      if (!ir::joins_in_place(node) || source == parts_.end()) continue;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!refused.contains(node.inputs[i])) continue;
        const Part& part = source->second[i];
        if (part.copied) {
          given_up.push_back(source->first);
        } else {
          copied_.insert({source->first, part.value});
        }
      }
      ++source;
    }
    for (const NodeId id : given_up) chosen_.erase(id);
    return false;
  }

  const ir::Graph& graph_;
  const PassContext& context_;
  const ir::Grouping grouping_;
  const JoinObstacles obstacles_;
  std::set<NodeId> chosen_;
  std::set<std::pair<NodeId, ValueId>> copied_;  // parts that have to be
  ir::Placements placed_;
  std::map<NodeId, std::vector<Part>> parts_;
};

}  // namespace

JoinObstacles::JoinObstacles(const ir::Graph& graph, const ir::Grouping& grouping, const Target& target,
                             const ir::PlacementObstacle& obstacle)
    : graph_(graph),
      grouping_(grouping),
      target_(target),
      obstacle_(obstacle),
      users_(ir::users(graph)),
      placed_(ir::find_placements(graph)),
      group_of_(graph.nodes().size(), kUngrouped),
      is_output_(graph.value_count()) {
  for (uint32_t i = 0; i < grouping.groups.size(); ++i) {
    for (const NodeId id : grouping.groups[i].nodes) group_of_[id] = i;
  }
  for (const ir::Graph::Port& port : graph.outputs()) is_output_[port.value] = true;
}

// Whether a kernel of the group stores the value, or a reshape of it.
bool JoinObstacles::is_stored(ValueId value, uint32_t group) const {
  const std::vector<ValueId>& outputs = grouping_.groups[group].outputs;
  if (std::find(outputs.begin(), outputs.end(), value) != outputs.end()) return true;
  return std::any_of(users_[value].begin(), users_[value].end(), [&](NodeId user) {
    const Node& node = graph_.node(user);
    return group_of_[user] == group && node.op == Op::kReshape && is_stored(node.outputs[0], group);
  });
}

bool JoinObstacles::is_stored(NodeId concat) const {
  return group_of_[concat] != kUngrouped && is_stored(graph_.node(concat).outputs[0], group_of_[concat]);
}

// Whether a node of the group computes something of it.
bool JoinObstacles::is_read_inside(ValueId value, uint32_t group) const {
  return std::any_of(users_[value].begin(), users_[value].end(), [&](NodeId user) {
    const Node& node = graph_.node(user);
    return group_of_[user] == group && (node.op != Op::kReshape || is_read_inside(node.outputs[0], group));
  });
}

std::string JoinObstacles::of_part(ValueId value, NodeId concat, const Placement& place) const {
  const Node& maker = graph_.producer(value);
  if (maker.op == Op::kParameter) return "it is an input of the graph";
  if (maker.op == Op::kConstant) return "it is a constant";
  if (is_output_[value]) return "it is an output of the graph, which has memory of its own";
  if (placed_.contains(value)) return "it lies in another concatenation";
  const auto& parts = graph_.node(concat).inputs;
  if (std::count(parts.begin(), parts.end(), value) > 1) return "it is several parts";
  const auto refused_by = [&](NodeId id) {
    return group_of_[id] == kUngrouped ? "" : obstacle_(graph_, grouping_.groups[group_of_[id]], value, place);
  };
  if (!ir::joins_in_place(maker)) {
    if (std::string why = refused_by(graph_.value(value).producer); !why.empty()) return why;
  }
  for (const NodeId user : users_[value]) {
    if (graph_.node(user).op == Op::kConcat) continue;
    if (std::string why = refused_by(user); !why.empty()) return why;
  }
  return {};
}

std::string JoinObstacles::of_concat(NodeId id) const {
  const Node& node = graph_.node(id);
  const ValueId result = node.outputs[0];
  const uint32_t group = group_of_[id];
  if (group == kUngrouped || grouping_.groups[group].kind != ir::GroupKind::kStitch)
    return "another kernel reads it so";
  if (!is_stored(id)) return "no kernel stores it: what reads it chooses among its parts";
  // What is written and read again to no purpose now, and the launches that there would be more.
  const bool is_read = is_read_inside(result, group);
  double saved = 0;
  int64_t launches = is_read ? 0 : -1;
  Placement place{result, graph_.shape(result), ir::Ints(graph_.shape(result).size(), 0)};
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId part = node.inputs[i];
    const Op op = graph_.producer(part).op;
    const bool is_made = op != Op::kParameter && op != Op::kConstant;
    const ir::Group* maker = is_made ? &grouping_.groups[group_of(part)] : nullptr;
    if (is_made && group_of(part) == group) {
      ++launches;
    } else if (of_part(part, id, place).empty()) {
      saved += (is_read ? 1 : 2) * stored_bytes(graph_, part);
    } else if (const std::string why = is_made ? obstacle_(graph_, *maker, part, place) : "-"; why.empty()) {
      saved += is_read ? 0 : stored_bytes(graph_, part);  // stored twice
    } else if (is_made && maker->kind == ir::GroupKind::kContraction) {
      return fmt::format("part {}: {}", i, why);
    } else {
      ++launches;
    }
    place.start[dim_of(node)] += graph_.shape(part)[dim_of(node)];
  }
  const double seconds = saved / target_.copy_bytes_per_second();
  const double cost = static_cast<double>(launches) * target_.boundary_seconds();
  if (saved > 0 && seconds > cost) return {};
  if (saved == 0) return "none of its parts is made by a kernel that could store it there";
  return fmt::format("storing parts in place saves {:.2g} us, launches that this takes {:.2g}", seconds * 1e6,
                     cost * 1e6);
}

ir::Graph join_in_place(const ir::Graph& graph, const PassContext& context) {
  return Joins(graph, context).run();
}

}  // namespace heddle::passes
