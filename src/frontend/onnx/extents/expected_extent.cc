#include "frontend/onnx/extents/expected_extent.h"

#include <algorithm>

#include "frontend/onnx/extents/extent_trace.h"
#include "frontend/onnx/graph_importer.h"

namespace heddle::onnx {
namespace {

// With the extent's key if it belongs to an input that the model leaves open.
ExtentTerm term_of(const NodeContext& ctx, const InputExtent& extent) {
  ExtentTerm term{"", ctx.shape(extent.input)[extent.dim]};
  const auto from = input_dim_of(ctx.b.graph(), ctx.in(extent.input), extent.dim);
  if (!from) return term;
  const auto& names = ctx.importer().input_names();
  if (const auto name = names.find(from->parameter); name != names.end()) {
    term.key = ctx.importer().state().extents.open_key(name->second, from->dim);
  }
  return term;
}

}  // namespace

void expect_extent(NodeContext& ctx, InputExtent total, std::initializer_list<InputExtent> parts) {
  ModelState& state = ctx.importer().state();
  const auto is_there = [&](const InputExtent& e) { return e.dim < ctx.shape(e.input).size(); };
  if (state.guesses.empty() || !is_there(total) || !std::all_of(parts.begin(), parts.end(), is_there)) return;
  ExtentSum sum{term_of(ctx, total), {}};
  for (const InputExtent& part : parts) sum.parts.push_back(term_of(ctx, part));
  state.sums.push_back(std::move(sum));
}

}  // namespace heddle::onnx
