#include "schedule/back_to_back/form.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "schedule/product/conv_problem.h"

namespace heddle::schedule {

void refuse_back_to_back(const std::string& why) {
  fail(ErrorCode::kUnsupportedOperator, "back to back", why);
}

namespace {

bool is_view_op(Op op) {
  return op == Op::kTranspose || op == Op::kReshape || op == Op::kBroadcast || op == Op::kSlice;
}

bool is_depthwise(const tile::ConvShape& s) {
  return s.c == 1 && s.o == 1 && s.groups > 1;
}

// These nodes of a group as a contraction group.
ir::Group part_of(const ir::Graph& graph, const ir::Group& group, const std::set<NodeId>& nodes, NodeId anchor) {
  ir::Group part{ir::GroupKind::kContraction, {nodes.begin(), nodes.end()}, anchor, {}, {}, group.placed};
  for (const NodeId id : part.nodes) {
    for (const ir::ValueId v : graph.node(id).inputs) {
      const bool known = std::find(part.inputs.begin(), part.inputs.end(), v) != part.inputs.end();
      if (!known && !nodes.contains(graph.value(v).producer)) part.inputs.push_back(v);
    }
    for (const ir::ValueId v : graph.node(id).outputs) {
      if (std::find(group.outputs.begin(), group.outputs.end(), v) != group.outputs.end()) part.outputs.push_back(v);
    }
  }
  return part;
}

}  // namespace

BackToBackForm back_to_back_form(const ir::Graph& graph, const ir::Group& group) {
  const std::set<NodeId> all(group.nodes.begin(), group.nodes.end());
  const ir::Node& last = graph.node(group.anchor);
  if (last.op == Op::kConv && !is_pointwise(conv_shape(graph, last)) && !is_depthwise(conv_shape(graph, last))) {
    refuse_back_to_back(
        "the second convolution has larger windows than a pixel, or groups: it needs its neighbours' results");
  }
  if (last.op == Op::kConv && is_channels_first(last)) refuse_back_to_back("the second convolution has channels first");
  if (last.op != Op::kConv && last.op != Op::kDot) refuse_back_to_back("the second contraction is no product");
  BackToBackForm form;
  form.inner = last.inputs[0];
  std::set<NodeId> second = all, first;
  while (is_view_op(graph.producer(form.inner).op) && all.contains(graph.value(form.inner).producer)) {
    form.inner = graph.producer(form.inner).inputs[0];
  }
  std::vector<NodeId> open = {graph.value(form.inner).producer};
  std::set<NodeId> products;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!all.contains(id) || !first.insert(id).second) continue;
    second.erase(id);
    const Op op = graph.node(id).op;
    if (op == Op::kDot || op == Op::kConv) products.insert(id);
    for (const ir::ValueId v : graph.node(id).inputs) open.push_back(graph.value(v).producer);
  }
  if (products.empty()) refuse_back_to_back("no product makes what the second one multiplies");
  form.first = part_of(graph, group, first, *products.rbegin());
  if (products.size() > 1) form.first.kind = ir::GroupKind::kBackToBack;
  form.first.outputs = {form.inner};
  form.second = part_of(graph, group, second, group.anchor);
  return form;
}

void check_rows(const Epilogue& first, int64_t batches, int64_t rows, int64_t columns, const MatrixPlace& read) {
  if (!first.bounds.empty()) refuse_back_to_back("the second one multiplies a part of what the first one makes");
  const auto place = affine_place(first, first.stores.at(0).at);
  if (!place) refuse_back_to_back("what the first one makes is stored in no order of rows");
  const auto& [batch, row, column, offset] = *place;
  // The step of one element is no step.
  const auto step = [](int64_t extent, int64_t stride) { return extent > 1 ? stride : 0; };
  const MatrixPlace stored{offset, step(batches, batch), step(rows, row), step(columns, column)};
  const MatrixPlace wanted{read.offset, step(batches, read.batch), step(rows, read.row), step(columns, read.column)};
  if (stored != wanted)
    refuse_back_to_back("the rows that the second one multiplies are not those that the first one makes");
}

}  // namespace heddle::schedule
