#include <algorithm>

#include "passes/fusion/context.h"
#include "passes/rewrite/view.h"

namespace heddle::passes {
namespace {

using ir::Node;
using ir::NodeId;
using ir::Op;
using Role = FusionContext::Role;

bool is_view_op(Op op) {
  return op == Op::kTranspose || op == Op::kReshape || op == Op::kBroadcast || op == Op::kSlice;
}

// The chain of layout nodes above an operand that nobody else reads, nearest first.
std::vector<NodeId> chain_above(const FusionContext& c, ir::ValueId operand, NodeId reader) {
  constexpr size_t kLongest = 64;  // canonical graphs have a few
  std::vector<NodeId> chain;
  NodeId at = c.graph.value(operand).producer;
  while (chain.size() < kLongest && c.role[at] == Role::kMemory && is_view_op(c.graph.node(at).op) &&
         c.only_read_by(c.graph.node(at).outputs[0], reader)) {
    chain.push_back(at);
    reader = at;
    at = c.graph.value(c.graph.node(at).inputs[0]).producer;
  }
  return chain;
}

// Whether the first `count` nodes of a chain compose to one strided view of what stands above them.
bool is_one_view(const ir::Graph& graph, const std::vector<NodeId>& chain, size_t count) {
  auto view = std::optional(StridedView::dense(graph.shape(graph.node(chain[count - 1]).inputs[0])));
  for (size_t i = count; i-- > 0 && view;) view = apply(*view, graph.node(chain[i]));
  return view.has_value();
}

void fuse_operand(FusionContext& c, ir::ValueId operand, NodeId anchor) {
  std::vector<NodeId> chain = chain_above(c, operand, anchor);
  size_t count = 0;
  for (size_t n = 1; n <= chain.size(); ++n) {
    if (is_one_view(c.graph, chain, n)) count = n;
  }
  if (count < chain.size()) {
    c.decide(false, "prologue", chain[count], anchor, "no strides express this view of its operand");
    chain.resize(count);
  }
  for (const NodeId id : chain) {
    if (!c.partition.merge(id, anchor)) {
      c.decide(false, "prologue", id, anchor, "a path through other kernels leads back into it");
      return;
    }
    c.role[id] = Role::kPrologue;
    c.decide(true, "prologue", id, anchor, "the operand is read through strides");
  }
}

}  // namespace

// A convolution of few channels (the first of a network) copies its image anyway: the change of layout before it costs
// nothing there. With more channels the kernels that read the image in place are better.
bool takes_image_view(const ir::Graph& graph, const Node& conv) {
  const Shape& x = graph.shape(conv.inputs[0]);
  return conv.attrs.text("layout") == "nhwc" && conv.attrs.integer("groups") == 1 && x.back() <= 4 &&
         conv.inputs[0] != conv.inputs[1] && graph.producer(conv.inputs[0]).op == Op::kTranspose;
}

void fuse_prologue(FusionContext& context, NodeId anchor) {
  const Node& node = context.graph.node(anchor);
  if (node.op == Op::kConv && takes_image_view(context.graph, node)) fuse_operand(context, node.inputs[0], anchor);
  if (node.op != Op::kDot || node.inputs[0] == node.inputs[1]) return;
  for (ir::ValueId operand : node.inputs) fuse_operand(context, operand, anchor);
}

}  // namespace heddle::passes
