#include "passes/contraction/small_dots.h"

#include <algorithm>
#include <numeric>

#include "ir/builder.h"
#include "ir/rewrite.h"
#include "passes/rewrite/dot_side.h"
#include "passes/rewrite/view.h"

namespace heddle::passes {
namespace {

// With so few terms and lines the multiplications take less time than moving the long matrix.
constexpr int64_t kFew = 16;
// A product with a shorter matrix takes no time worth the change.
constexpr int64_t kLong = 64;

// A matrix that is computed may be the few queries or keys of an attention, which is one kernel for itself.
bool is_small(const ir::Graph& graph, const Node& node) {
  const DType dtype = graph.dtype(node.inputs[0]);
  const bool is_real = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
  if (!is_real || graph.dtype(node.inputs[1]) != dtype) return false;
  const DotSide a(graph, node, 0), x(graph, node, 1);
  const auto [few, many] = std::minmax({a.lines(), x.lines()});
  const size_t small = a.lines() == few ? 0 : 1;
  return a.terms() <= kFew && few <= kFew && many >= kLong && a.terms() * few > 0 &&
         is_constant_view(graph, node.inputs[small]);
}

// [batch][lines of a][lines of x][terms], of which the last are summed.
ValueId sum_of_products(ir::Rewriter& r, const Node& node) {
  const ir::Graph& graph = r.source();
  const DotSide a(graph, node, 0), x(graph, node, 1);
  const size_t batch = a.batch.size(), results = batch + a.free.size() + x.free.size();
  const ir::TensorType& result = graph.type(node.outputs[0]);
  ir::Builder b(r.target());
  b.set_origins(r.origins());
  Shape all = result.shape;
  for (const int64_t d : a.contract) all.push_back(a.shape[static_cast<size_t>(d)]);
  const auto spread = [&](ValueId v, const DotSide& side, size_t first_line) {
    Ints dims(side.shape.size());
    const auto lines = dims.begin() + static_cast<int64_t>(batch),
               terms = lines + static_cast<int64_t>(side.free.size());
    std::iota(dims.begin(), lines, 0);
    std::iota(lines, terms, first_line);
    std::iota(terms, dims.end(), results);
    return b.broadcast(b.transpose(b.cast(r(v), DType::kF32), side.row_major()), all, dims);
  };
  const ValueId products = b.mul(spread(node.inputs[0], a, batch), spread(node.inputs[1], x, batch + a.free.size()));
  Ints terms(a.contract.size());
  std::iota(terms.begin(), terms.end(), results);
  return b.cast(b.reduce("sum", products, terms), result.dtype);
}

}  // namespace

ir::Graph small_dots(const ir::Graph& graph, const PassContext&) {
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.op != Op::kDot || !is_small(graph, node)) return std::nullopt;
    return std::vector{sum_of_products(r, node)};
  });
}

}  // namespace heddle::passes
