#include <algorithm>
#include <bit>
#include <cmath>

#include "schedule/region/cuda/drafts.h"

namespace heddle::schedule {
namespace {

// Whether `e` is (x - s / count)^2, x being what `sum` adds and s its result.
bool squares_deviation(const CudaDrafts& k, ExprId e, const CudaReduction& sum, int64_t count) {
  const auto is_op = [&](ExprId id, ir::Op op) { return k.pool[id].kind == Expr::Kind::kOp && k.pool[id].op == op; };
  const auto is_sum = [&](ExprId id) {
    const Expr& expr = k.pool[id];
    if (sum.scratch) return expr.kind == Expr::Kind::kLoad && expr.id == *sum.scratch && expr.index == sum.at;
    return expr.kind == Expr::Kind::kLocal && expr.id == sum.local;
  };
  const auto is_number = [&](ExprId id, double value) {
    constexpr double kExact = 1e-6;
    if (k.pool[id].kind != Expr::Kind::kConstant) return false;
    return std::abs(std::bit_cast<double>(k.pool[id].bits) / value - 1) < kExact;
  };
  const auto is_mean = [&](ExprId id) {
    const auto n = static_cast<double>(count);
    const std::vector<ExprId>& args = k.pool[id].args;
    if (is_op(id, ir::Op::kDiv)) return is_sum(args[0]) && is_number(args[1], n);
    if (!is_op(id, ir::Op::kMul)) return false;
    return (is_sum(args[0]) && is_number(args[1], 1 / n)) || (is_sum(args[1]) && is_number(args[0], 1 / n));
  };
  if (!is_op(e, ir::Op::kMul) || k.pool[e].args[0] != k.pool[e].args[1]) return false;
  const ExprId difference = k.pool[e].args[0];
  if (!is_op(difference, ir::Op::kSub)) return false;
  const auto& args = k.pool[difference].args;
  return (args[0] == sum.value && is_mean(args[1])) || (args[1] == sum.value && is_mean(args[0]));
}

}  // namespace

void merge_moments(CudaDrafts& k) {
  constexpr int64_t kMostOfThread = 512;  // values, whose differences to one of them are summed plainly
  constexpr int kMostLanes = 4;           // of a block that is alone, whose registers decide how many there are
  if (k.mapping.team <= kWarp) return;    // what it saves is that warps or blocks wait for each other twice
  const auto fits = [&](const CudaDraft& d, const CudaReduction& r) {
    return !d.scan && r.combine == Combine::kSum && !r.squares && compute_dtype(r.dtype) == DType::kF32 &&
           (r.over == CudaReduction::Over::kTeam ||
            (r.over == CudaReduction::Over::kColumn && k.mapping.cta_group > 1));
  };
  for (size_t first = 0; first < k.drafts.size(); ++first) {
    for (CudaReduction& sum : k.drafts[first].reductions) {
      CudaDraft& d = k.drafts[first];
      const int64_t count = k.loop_volume(d.loops) / k.loop_volume(d.kept);
      if (!fits(d, sum) || k.desc->inner_steps(d.layout) * d.layout.vector > kMostOfThread) continue;
      if (k.mapping.cta_group == 1 && (d.layout.vector > kMostLanes || d.layout.replicated)) continue;
      for (size_t later = first + 1; later < k.drafts.size() && !sum.squares; ++later) {
        CudaDraft& other = k.drafts[later];
        if (!other.shares(d) || other.kept != d.kept) continue;
        const auto found = std::find_if(other.reductions.begin(), other.reductions.end(), [&](const CudaReduction& r) {
          return fits(other, r) && r.over == sum.over && squares_deviation(k, r.value, sum, count);
        });
        if (found == other.reductions.end()) continue;
        sum.squares = CudaReduction::Squares{found->local, found->scratch, found->at};
        sum.comment += " and squared deviations";
        other.reductions.erase(found);
      }
    }
  }
  std::erase_if(k.drafts, [](const CudaDraft& d) { return d.reductions.empty() && d.stores.empty() && !d.scan; });
}

}  // namespace heddle::schedule
