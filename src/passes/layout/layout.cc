#include "passes/layout/layout.h"

#include <algorithm>

#include "passes/layout/channels_first.h"
#include "passes/rewrite/emitter.h"

namespace heddle::passes {
namespace {

// [N, C, spatial...] -> [N, spatial..., C]
Ints channels_last(size_t rank) {
  Ints perm = counting(rank);
  std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  return perm;
}

ValueId conv_channels_last(Emitter& e, const std::vector<ValueId>& in, Attrs attrs) {
  const Ints perm = channels_last(e.shape(in[0]).size());
  attrs.set("layout", std::string("nhwc"));
  const ValueId x = e.transpose(in[0], perm);
  return e.transpose(e.emit(Op::kConv, {x, in[1]}, attrs), inverse(perm));
}

ValueId window_channels_last(Emitter& e, ValueId x, Attrs attrs) {
  const Ints perm = channels_last(e.shape(x).size());
  for (const char* name : {"window", "strides", "low", "high", "dilations"}) {
    Ints values;
    for (int64_t d : perm) values.push_back(attrs.ints(name)[static_cast<size_t>(d)]);
    attrs.set(name, values);
  }
  return e.transpose(e.emit(Op::kWindowReduce, {e.transpose(x, perm)}, attrs), inverse(perm));
}

}  // namespace

ir::Graph layout(const ir::Graph& graph, const PassContext& context) {
  const std::vector<bool> first = better_channels_first(graph, context.target);
  ir::Rewriter rewriter(graph);
  Emitter e(rewriter, canonical_rules());
  return rewriter.run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (!node.outputs.empty() && first[graph.value(node.outputs[0]).producer]) return std::nullopt;
    if (node.op == Op::kConv && node.attrs.text("layout") == "nchw") {
      return std::vector{conv_channels_last(e, r(node.inputs), node.attrs)};
    }
    if (node.op == Op::kWindowReduce && is_spatial(node.attrs)) {
      return std::vector{window_channels_last(e, r(node.inputs[0]), node.attrs)};
    }
    return std::nullopt;
  });
}

}  // namespace heddle::passes
