#include "schedule/region/exprs/targets.h"

#include <algorithm>
#include <set>

#include "schedule/expr/inline.h"

namespace heddle::schedule {

using ir::Op;

namespace {

// Whether a kernel would reduce something for the value.
bool reduces(const KernelContext& context, ir::ValueId value) {
  std::set<ir::ValueId> seen;
  std::vector<ir::ValueId> open = {value};
  while (!open.empty()) {
    const ir::ValueId v = open.back();
    open.pop_back();
    if (!seen.insert(v).second || context.is_input(v)) continue;
    const ir::Node& node = context.graph.producer(v);
    if (node.op == Op::kReduce || node.op == Op::kArgReduce) return true;
    if (Inliner::inlines(node.op)) open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  return false;
}

}  // namespace

std::vector<RootTarget> targets_of(const KernelContext& context, ir::ValueId value) {
  constexpr size_t kMostParts = 8;
  const auto shape = [&](ir::ValueId v) { return context.graph.shape(v); };
  const ir::Node& last = context.graph.producer(value);
  const bool casts =
      last.op == Op::kCast && !context.is_input(last.inputs[0]) && !context.must_be_input(last.inputs[0]);
  const ir::Node& node = casts ? context.graph.producer(last.inputs[0]) : last;
  const bool apart =
      context.parts_apart && node.op == Op::kConcat && node.inputs.size() <= kMostParts &&
      std::all_of(node.inputs.begin(), node.inputs.end(),
                  [&](ir::ValueId v) { return shape(v) == shape(node.inputs[0]) && element_count(shape(v)) > 0; }) &&
      reduces(context, value);
  if (!apart) return {{value, value}};
  std::vector<RootTarget> targets;
  const auto dim = static_cast<size_t>(node.attrs.integer("dim"));
  int64_t first = 0;
  for (ir::ValueId part : node.inputs) {
    targets.push_back({value, part, dim, first, casts ? &last : nullptr});
    first += shape(part)[dim];
  }
  return targets;
}

Index place_in(IndexPool& indices, const ir::Graph& graph, const RootTarget& target, const std::vector<Index>& at) {
  std::vector<Index> there = at;
  if (target.part != target.value) there[target.dim] = indices.offset(there[target.dim], target.first);
  return indices.linear(there, graph.shape(target.value));
}

}  // namespace heddle::schedule
