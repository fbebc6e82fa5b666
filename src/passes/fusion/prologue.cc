#include <algorithm>

#include "passes/fusion/context.h"
#include "passes/rewrite/view.h"

namespace heddle::passes {
namespace {

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

// The first `count` nodes of a chain as one strided view of the value above them; nothing if no strides express it.
std::optional<StridedView> view_through(const ir::Graph& graph, const std::vector<NodeId>& chain, size_t count) {
  auto view = std::optional(StridedView::dense(graph.shape(graph.node(chain[count - 1]).inputs[0])));
  for (size_t i = count; i-- > 0 && view;) view = apply(*view, graph.node(chain[i]));
  return view;
}

// The number of elements of the longest run of trailing dimensions, among `dims`, that one stride expresses.
int64_t last_run(const StridedView& view, const std::vector<size_t>& dims) {
  int64_t extent = 1, stride = 0;
  for (size_t i = dims.size(); i-- > 0;) {
    if (view.shape[dims[i]] == 1) continue;
    if (extent > 1 && view.strides[dims[i]] != stride * extent) break;
    if (extent == 1) stride = view.strides[dims[i]];
    extent *= view.shape[dims[i]];
  }
  return extent;
}

// True if a product reads a view as matrices: k has one stride, and all rows have one stride or fall into batches that
// have one and fill a tile. The kernels compute an address for each piece of other views.
bool is_read_as_matrices(const StridedView& view, const Node& dot, const char* batch, const char* contract) {
  constexpr int64_t kRowsOfTile = 64;
  std::vector<size_t> rows, k;
  int64_t all_rows = 1, depth = 1;
  const auto has = [&](const char* name, size_t d) {
    const ir::Ints& dims = dot.attrs.ints(name);
    return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
  };
  for (size_t d = 0; d < view.shape.size(); ++d) {
    if (has(batch, d)) continue;
    const bool summed = has(contract, d);
    (summed ? k : rows).push_back(d);
    (summed ? depth : all_rows) *= view.shape[d];
  }
  return last_run(view, k) == depth && last_run(view, rows) >= std::min(all_rows, kRowsOfTile);
}

// True if memory-bound work makes the operand for this product alone and the product does not read the view as
// matrices. The kernel that makes the operand writes it in any case, so it stores the rows in order.
bool is_stored_in_order(const FusionContext& c, const std::vector<NodeId>& chain, ir::ValueId operand, NodeId anchor) {
  const Node& dot = c.graph.node(anchor);
  const ir::ValueId source = c.graph.node(chain.back()).inputs[0];
  if (dot.op != Op::kDot || c.role[c.graph.value(source).producer] != Role::kMemory ||
      !c.only_read_by(source, chain.back())) {
    return false;
  }
  const auto view = view_through(c.graph, chain, chain.size());
  const bool first = operand == dot.inputs[0];
  return !is_read_as_matrices(*view, dot, first ? "lhs_batch" : "rhs_batch", first ? "lhs_contract" : "rhs_contract");
}

// The `dequantize` node that makes an operand, perhaps behind a transpose, and the nodes from it to the product.
std::vector<NodeId> packed_weights(const FusionContext& c, ir::ValueId operand, NodeId reader) {
  std::vector<NodeId> chain;
  for (;;) {
    const NodeId at = c.graph.value(operand).producer;
    const Node& node = c.graph.node(at);
    const bool passes = node.op == Op::kTranspose || node.op == Op::kDequantize;
    if (!passes || c.role[at] != Role::kMemory || !c.only_read_by(operand, reader)) return {};
    chain.push_back(at);
    if (node.op == Op::kDequantize) return chain;
    operand = node.inputs[0], reader = at;
  }
}

// True if the product should read the packed weights itself; false if it should read them as floats.
bool pays_to_read_packed(const FusionContext& c, std::vector<NodeId> chain, NodeId anchor, std::string* reason) {
  if (!c.options.pays_to_read_packed) return true;
  const auto group_with = [&](const std::vector<NodeId>& more) {
    std::vector<NodeId> nodes = c.partition.nodes(c.partition.cluster_of(anchor));
    nodes.insert(nodes.end(), more.begin(), more.end());
    ir::Group group = c.group_of(std::move(nodes));
    group.kind = ir::GroupKind::kContraction;
    group.anchor = anchor;
    return group;
  };
  const ir::Group packed = group_with(chain);
  chain.pop_back();
  return c.options.pays_to_read_packed(packed, group_with(chain), reason);
}

bool fuse_packed_weights(FusionContext& c, ir::ValueId operand, NodeId anchor) {
  const std::vector<NodeId> chain = packed_weights(c, operand, anchor);
  if (chain.empty()) return false;
  std::string reason;
  if (!pays_to_read_packed(c, chain, anchor, &reason)) {
    c.decide(false, "prologue", chain.back(), anchor,
             fmt::format("weights of few bits are widened before: {}", reason));
    return false;
  }
  for (const NodeId id : chain) {
    if (!c.partition.merge(id, anchor)) return false;
    c.role[id] = Role::kPrologue;
  }
  const Node& node = c.graph.node(chain.back());
  const auto bits = node.attrs.integer("bits");
  const double saved =
      static_cast<double>(element_count(c.graph.shape(node.outputs[0]))) * static_cast<double>(32 - bits) / 8e6;
  c.decide(
      true, "prologue", chain.back(), anchor,
      fmt::format("weights of {} bits are widened where they are multiplied; in f32 they would take {:.1f} MB more",
                  bits, saved));
  return true;
}

// Names weights that come from constant integers of few bits in a form that quantized_weights (passes/quantized) does
// not pack, so that each run widens them to memory.
void explain_widened(FusionContext& c, ir::ValueId operand, NodeId anchor) {
  constexpr size_t kMost = 64;
  const int64_t elements = element_count(c.graph.shape(operand));
  std::vector<ir::ValueId> reached = {operand};
  for (size_t i = 0; i < reached.size() && reached.size() < kMost; ++i) {
    const Node& node = c.graph.producer(reached[i]);
    const DType dtype = c.graph.dtype(reached[i]);
    if (node.op == Op::kConstant && is_int(dtype) && bits_of(dtype) <= 8 && i > 0 &&
        element_count(c.graph.shape(reached[i])) * 4 >= elements) {
      c.decide(false, "prologue", c.graph.value(operand).producer, anchor,
               "its weights of few bits are widened in each run: they are not (q - z) * s with one scale for blocks of "
               "whole "
               "words along the sum");
      return;
    }
    if (ir::is_elementwise(node.op) || ir::class_of(node.op) == OpClass::kLayout) {
      reached.insert(reached.end(), node.inputs.begin(), node.inputs.end());
    } else if (node.op == Op::kGather) {
      reached.push_back(node.inputs[1]);  // of a table
    }
  }
}

void fuse_operand(FusionContext& c, ir::ValueId operand, NodeId anchor) {
  std::vector<NodeId> chain = chain_above(c, operand, anchor);
  size_t count = 0;
  for (size_t n = 1; n <= chain.size(); ++n) {
    if (view_through(c.graph, chain, n)) count = n;
  }
  if (count < chain.size()) {
    c.decide(false, "prologue", chain[count], anchor, "no strides express this view of its operand");
    chain.resize(count);
  }
  if (!chain.empty() && is_stored_in_order(c, chain, operand, anchor)) {
    c.decide(false, "prologue", chain[0], anchor,
             "the kernel that makes the operand stores it in the order of its rows");
    return;
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

// True for depthwise convolutions and the shapes of Winograd's form: their kernels read pixels in place.
bool reads_in_place(const Node& conv, const Shape& filters) {
  constexpr int64_t kFewest = 8;
  const ir::Ints& strides = conv.attrs.ints("strides");
  if (filters[1] == 1 && filters[0] == conv.attrs.integer("groups")) return true;
  return filters[0] >= kFewest && filters[1] >= kFewest &&
         ir::Ints(filters.begin() + 2, filters.end()) == ir::Ints{3, 3} &&
         std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 1; });
}

// A convolution that copies its image anyway reads it in another order at no cost: the change of layout of the model's
// input is not a kernel of its own there. With many channels the kernels that read the image in place are better.
bool takes_image_view(const ir::Graph& graph, const Node& conv, const Target& target) {
  const Shape &x = graph.shape(conv.inputs[0]), &w = graph.shape(conv.inputs[1]);
  const Node& view = graph.producer(conv.inputs[0]);
  if (conv.attrs.text("layout") != "nhwc" || conv.inputs[0] == conv.inputs[1] || view.op != Op::kTranspose)
    return false;
  if (conv.attrs.integer("groups") == 1 && x.back() <= 4) return true;
  return target.traits().interleaves_columns && graph.producer(view.inputs[0]).op == Op::kParameter &&
         !reads_in_place(conv, w);
}

// Filter gradients whose kernel reads both operands where they are in memory.
bool fuse_filter_gradient(FusionContext& c, NodeId conv) {
  if (!c.options.find_filter_gradient) return false;
  const auto found = c.options.find_filter_gradient(conv, [&](NodeId view, NodeId reader) {
    return c.role[view] == Role::kMemory && c.only_read_by(c.graph.node(view).outputs[0], reader);
  });
  if (!found || std::any_of(found->views.begin(), found->views.end(),
                            [&](NodeId view) { return !c.partition.merge(view, conv); })) {
    return false;
  }
  for (const NodeId view : found->views) {
    c.role[view] = Role::kPrologue;
    c.decide(true, "prologue", view, conv, "a filter gradient is summed over the pixels where they are");
  }
  return true;
}

void fuse_prologue(FusionContext& context, NodeId anchor, const Target& target) {
  const Node& node = context.graph.node(anchor);
  if (node.op == Op::kConv && fuse_filter_gradient(context, anchor)) return;
  if (node.op == Op::kConv && takes_image_view(context.graph, node, target))
    fuse_operand(context, node.inputs[0], anchor);
  if (node.op != Op::kDot || node.inputs[0] == node.inputs[1]) return;
  for (ir::ValueId operand : node.inputs) {
    if (fuse_packed_weights(context, operand, anchor)) continue;
    explain_widened(context, operand, anchor);
    fuse_operand(context, operand, anchor);
  }
}

}  // namespace heddle::passes
