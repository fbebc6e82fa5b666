#include "schedule/region/cuda/vector_length.h"

#include <algorithm>
#include <set>

#include "schedule/expr/expr_walk.h"
#include "schedule/expr/lane_stride.h"
#include "schedule/expr/saturated.h"
#include "schedule/region/cost.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kAccessBytes = 16;
constexpr int kMostLanes = 8;

// What accesses along a lane variable cost per element for one candidate.
class VectorCost {
 public:
  VectorCost(const ExprPool& pool, const std::vector<GridDim>& grid, VarId lane, int64_t lanes)
      : pool_(pool), lane_(lane), lanes_(lanes) {
    for (const GridDim& d : grid) {
      if (d.block > 1) multiples_[d.start] = d.block;
    }
    multiples_[lane] = lanes;
  }

  // In accesses per element. Pieces of a vector that is not aligned touch each line several times.
  double access(const Index& at) const {
    const auto stride = lane_stride(at);
    if (stride == 0) return 1.0 / static_cast<double>(lanes_);
    if (stride != 1) return 1.0;
    const int64_t d = pool_.indices.divisor(at, multiples_);
    const int64_t piece = d == 0 ? lanes_ : std::min(lanes_, d & -d);
    return (piece == lanes_ ? 1.0 : 1.3) / static_cast<double>(piece);
  }
  double guard(const Expr& e) const {
    const auto stride = lane_stride(e.index);
    if (lanes_ == 1 || stride == 0) return 0;
    // Known for each lane where a vector is all there is.
    if (lanes_ == pool_.indices.extent(lane_) && pool_.vars(e.index) == uint64_t{1} << lane_) return 0;
    const int64_t d = pool_.indices.divisor(e.index, multiples_);
    const bool whole = stride == 1 && d % lanes_ == 0 && e.lo % lanes_ == 0 && e.hi % lanes_ == 0;
    return whole ? 0 : 2.0;  // lane by lane, with branches
  }

 private:
  std::optional<int64_t> lane_stride(const Index& at) const {
    return schedule::lane_stride(pool_, at, {lane_, lanes_}, multiples_);
  }

  const ExprPool& pool_;
  VarId lane_;
  int64_t lanes_;
  std::map<VarId, int64_t> multiples_;
};

}  // namespace

int vector_length(const ExprPool& pool, const std::vector<GridDim>& grid, const LaneVariable& variable,
                  const std::vector<ExprId>& values, const std::vector<Store>& stores, uint32_t scratch) {
  const VarId lane = variable.var;
  std::vector<ExprId> roots = values;
  for (const Store& s : stores) roots.push_back(s.value);
  // Products of f64 that kernels compute in f32, and their operands.
  std::set<ExprId> narrowed;
  visit_exprs(pool, roots, [&](ExprId e) {
    if (const auto quotient = saturated_quotient_of(pool, e)) {
      narrowed.insert({quotient->product, pool[quotient->product].args[0]});
    }
  });
  size_t widest = 1;
  const auto touches = [&](const Index& at) {
    const uint64_t vars = pool.vars(at);
    return (vars >> lane & 1) != 0 && (vars & variable.streams) == variable.streams;
  };
  visit_exprs(pool, roots, [&](ExprId e) {
    const Expr& expr = pool[e];
    // What jumps along the lanes is loaded lane by lane in any case.
    const bool operand = expr.kind == Expr::Kind::kLoad && expr.id < scratch;
    const bool beside = operand && stride_along(pool, expr.index, lane).value_or(1) <= 1;
    if (beside && touches(expr.index)) widest = std::max(widest, size_of(expr.dtype));
    const bool is_f64 = expr.kind == Expr::Kind::kOp && expr.dtype == DType::kF64;
    if (is_f64 && !narrowed.contains(e)) widest = std::max(widest, size_of(expr.dtype));
  });
  for (const Store& s : stores) {
    // Rows that values name lie anywhere: what goes to several of them is stored element by element.
    if (pool.indices.reads_values(s.at) && !stride_along(pool, s.at, lane)) return 1;
    if (s.buffer < scratch && touches(s.at)) widest = std::max(widest, size_of(s.dtype));
  }
  int best = 1;
  double least = 0;
  for (int64_t lanes = 1; lanes <= std::min<int64_t>(kMostLanes, kAccessBytes / static_cast<int64_t>(widest));
       lanes *= 2) {
    if (variable.extent % lanes != 0) break;
    const VectorCost cost(pool, grid, lane, lanes);
    double total = 0;
    visit_exprs(pool, roots, [&](ExprId e) {
      const Expr& expr = pool[e];
      if (expr.kind == Expr::Kind::kLoad) total += cost.access(expr.index);
      if (expr.kind == Expr::Kind::kGuard) total += cost.guard(expr);
    });
    for (const Store& s : stores) total += 1.5 * cost.access(s.at);
    if (lanes == 1 || total < 0.9 * least) {
      best = static_cast<int>(lanes);
      least = total;
    }
  }
  return best;
}

}  // namespace heddle::schedule
