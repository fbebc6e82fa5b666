#include <bit>
#include <cmath>

#include "schedule/region/cuda/drafts.h"

namespace heddle::schedule {

// Whether `e` is (x - s / count)^2, x being what `sum` adds and s its result.
bool CudaDrafts::squares_deviation(ExprId e, const CudaReduction& sum, int64_t count) const {
  const auto is_op = [&](ExprId id, ir::Op op) { return pool_[id].kind == Expr::Kind::kOp && pool_[id].op == op; };
  const auto is_sum = [&](ExprId id) {
    const Expr& expr = pool_[id];
    if (sum.scratch) return expr.kind == Expr::Kind::kLoad && expr.id == *sum.scratch && expr.index == sum.at;
    return expr.kind == Expr::Kind::kLocal && expr.id == sum.local;
  };
  const auto is_number = [&](ExprId id, double value) {
    constexpr double kExact = 1e-6;
    if (pool_[id].kind != Expr::Kind::kConstant) return false;
    return std::abs(std::bit_cast<double>(pool_[id].bits) / value - 1) < kExact;
  };
  const auto is_mean = [&](ExprId id) {
    const auto n = static_cast<double>(count);
    const std::vector<ExprId>& args = pool_[id].args;
    if (is_op(id, ir::Op::kDiv)) return is_sum(args[0]) && is_number(args[1], n);
    if (!is_op(id, ir::Op::kMul)) return false;
    return (is_sum(args[0]) && is_number(args[1], 1 / n)) || (is_sum(args[1]) && is_number(args[0], 1 / n));
  };
  if (!is_op(e, ir::Op::kMul) || pool_[e].args[0] != pool_[e].args[1]) return false;
  const ExprId difference = pool_[e].args[0];
  if (!is_op(difference, ir::Op::kSub)) return false;
  const auto& args = pool_[difference].args;
  return (args[0] == sum.value && is_mean(args[1])) || (args[1] == sum.value && is_mean(args[0]));
}

void CudaDrafts::merge_moments() {
  constexpr int64_t kMostOfThread = 512;     // values, whose differences to one of them are summed plainly
  constexpr int kWarp = 32, kMostLanes = 4;  // of a block that is alone, whose registers decide how many there are
  if (mapping_.team <= kWarp) return;        // what it saves is that warps or blocks wait for each other twice
  const auto fits = [&](const Draft& d, const CudaReduction& r) {
    return !d.scan && r.combine == Combine::kSum && !r.squares && compute_dtype(r.dtype) == DType::kF32 &&
           (r.over == CudaReduction::Over::kTeam || (r.over == CudaReduction::Over::kColumn && mapping_.cta_group > 1));
  };
  for (size_t first = 0; first < drafts_.size(); ++first) {
    for (CudaReduction& sum : drafts_[first].reductions) {
      Draft& d = drafts_[first];
      const int64_t count = loop_volume(d.loops) / loop_volume(d.kept);
      if (!fits(d, sum) || chain_of(d.layout) * d.layout.vector > kMostOfThread) continue;
      if (mapping_.cta_group == 1 && (d.layout.vector > kMostLanes || d.layout.replicated)) continue;
      for (size_t later = first + 1; later < drafts_.size() && !sum.squares; ++later) {
        Draft& other = drafts_[later];
        if (!shares(first, later) || other.kept != d.kept) continue;
        const auto found = std::find_if(other.reductions.begin(), other.reductions.end(), [&](const CudaReduction& r) {
          return fits(other, r) && r.over == sum.over && squares_deviation(r.value, sum, count);
        });
        if (found == other.reductions.end()) continue;
        sum.squares = CudaReduction::Squares{found->local, found->scratch, found->at};
        sum.comment += " and squared deviations";
        other.reductions.erase(found);
      }
    }
  }
  std::erase_if(drafts_, [](const Draft& d) { return d.reductions.empty() && d.stores.empty() && !d.scan; });
}

}  // namespace heddle::schedule
