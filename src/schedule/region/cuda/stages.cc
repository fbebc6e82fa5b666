#include <algorithm>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/region/cuda/drafts.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kLongSum = 128;   // additions in a row after which a running sum is compensated
constexpr int64_t kMostSteps = 16;  // of one thread, written out

class CudaStageBuilder : public CudaDrafts {
 public:
  using CudaDrafts::CudaDrafts;

  std::shared_ptr<CudaStitchDesc> run() {
    desc_ = std::make_shared<CudaStitchDesc>();
    desc_->grid = mapping_.grid;
    desc_->team = mapping_.team;
    desc_->threads = mapping_.threads;
    desc_->blocks = mapping_.blocks;
    desc_->turns = mapping_.turns;
    desc_->cta_group = mapping_.cta_group;
    desc_->whole_grid = mapping_.whole_grid;
    desc_->serial = mapping_.serial;
    desc_->min_blocks_per_sm = mapping_.min_blocks_per_sm;
    first_scratch_ = static_cast<uint32_t>(exprs_.inputs.size() + exprs_.roots.size());
    next_local_ = static_cast<uint32_t>(exprs_.sites.size());
    place_results();
    draft_reductions();
    draft_stores();
    std::stable_sort(drafts_.begin(), drafts_.end(), [](const Draft& a, const Draft& b) {
      return std::pair(a.level, a.reductions.empty()) < std::pair(b.level, b.reductions.empty());
    });
    // Spreads need the extents of loops, which the description knows by its pool.
    choose_spreads();
    merge_moments();
    store_shared_columns();
    keep_between_stages();
    load_ahead();
    load_next();
    load_before();
    for (Draft& draft : ahead_) desc_->ahead.push_back(finish(draft));
    for (Draft& draft : before_) desc_->before.push_back(finish(draft));
    for (Draft& draft : drafts_) desc_->stages.push_back(finish(draft));
    for (Draft& draft : after_) desc_->after.push_back(finish(draft));
    find_once();
    mark_barriers(desc_->stages);
    mark_barriers(desc_->after);
    mark_copies(desc_->stages);
    desc_->scratch = std::move(scratch_);
    desc_->schemes = std::move(schemes_);
    desc_->wide_index = needs_wide_index();
    desc_->pool = std::move(pool_);
    return desc_;
  }

 private:
  std::string name_of(const ReductionSite& i) const {
    std::string text = std::string(to_string(combine_of(*i.node)));
    if (!i.node->origins.empty()) text += " of " + graph_.origin(i.node->origins[0]).op_type;
    return text;
  }

  // Whether a later reduction goes over the columns, one by one: it cannot read them as one vector.
  bool is_folded(VarId columns) const {
    return std::any_of(exprs_.sites.begin(), exprs_.sites.end(),
                       [&](const ReductionSite& i) { return (inner(i.reduced) & bit(columns)) != 0; });
  }

  // Results that vary within an iteration lie in scratch; the others every thread of the team has.
  void place_results() {
    for (const ReductionSite& i : exprs_.sites) {
      const uint64_t loops = inner(i.kept);
      const DType result = graph_.dtype(i.value);
      CudaReduction r;
      r.combine = combine_of(*i.node);
      r.dtype = pool_[i.operand].dtype;
      r.local = i.local;
      r.comment = name_of(i);
      r.last = i.node->op == ir::Op::kArgReduce && i.node->attrs.flag("last");
      std::string reason = "one value per iteration of the grid";
      if (is_carried(i)) {
        r.over = CudaReduction::Over::kCarried;
        reason = fmt::format("running results of {} turns stay in registers", loop_extent(*mapping_.serial));
      } else if (loops != 0 && mapping_.team == 1 && mapping_.vector && loops == bit(*mapping_.vector) &&
                 blocked(*mapping_.vector) != nullptr && !is_folded(*mapping_.vector)) {
        r.over = CudaReduction::Over::kThread;
        reason = "one column per thread";
      } else if (loops != 0) {
        r.over = CudaReduction::Over::kGroup;  // or a column's, by the spread
        reason = fmt::format("{} values within an iteration", loop_volume(loops));
        r.at = scratch_position(loops);
        r.scratch = new_scratch(is_arg(r.combine) ? DType::kI64 : result, loop_volume(loops));
        if (i.node->op != ir::Op::kScan) {
          const ExprId local = pool_.local(result, i.local, i.position);
          in_scratch_[local] = pool_.load(compute_dtype(result), *r.scratch, r.at);
        }
      }
      Scheme scheme = r.scratch ? Scheme::kRegional : Scheme::kLocal;
      if (mapping_.cta_group > 1) {
        scheme = mapping_.whole_grid ? Scheme::kGlobal : Scheme::kCluster;
        reason += fmt::format(", of {} blocks", mapping_.cta_group);
      }
      schemes_.push_back({name_of(i), scheme, true, reason});
      results_.push_back(std::move(r));
    }
  }

  ExprId resolve(ExprId e) { return in_scratch_.empty() ? e : pool_.substitute(e, {}, in_scratch_); }

  Draft& draft_for(int level, uint64_t loops, uint64_t kept) {
    for (Draft& d : drafts_) {
      if (d.level == level && d.loops == loops && d.kept == kept && !d.scan) return d;
    }
    Draft& d = drafts_.emplace_back();
    d.level = level;
    d.loops = loops;
    d.kept = kept;
    return d;
  }

  void draft_reductions() {
    for (size_t k = 0; k < exprs_.sites.size(); ++k) {
      const ReductionSite& i = exprs_.sites[k];
      CudaReduction r = results_[k];
      r.value = resolve(i.operand);
      if (is_arg(r.combine)) r.position = resolve(i.along);
      if (is_carried(i)) continue;
      const uint64_t kept = inner(i.kept), loops = kept | inner(i.reduced);
      Draft& draft = draft_for(i.level, loops, kept);
      if (i.node->op == ir::Op::kScan) draft.scan = {i.node->attrs.flag("exclusive"), i.node->attrs.flag("reverse")};
      draft.reductions.push_back(std::move(r));
    }
    for (size_t k = 0; k < exprs_.sites.size(); ++k) {
      const ReductionSite& i = exprs_.sites[k];
      if (!is_carried(i)) continue;
      CudaReduction r = results_[k];
      r.value = resolve(i.operand);
      sweep_over(inner(i.kept), i.level).reductions.push_back(std::move(r));
    }
  }

  // The first sweep over these points that comes late enough.
  Draft& sweep_over(uint64_t loops, int level) {
    Draft* best = nullptr;
    for (Draft& d : drafts_) {
      if (d.scan) best = &d;  // alone in its kernel
      if (d.loops == loops && d.level >= level && (best == nullptr || d.level < best->level)) best = &d;
    }
    if (best != nullptr) return *best;
    Draft& d = drafts_.emplace_back();
    d.level = level;
    d.loops = d.kept = loops;
    return d;
  }

  int level_of(ExprId e, bool& carried) const {
    int level = 0;
    exprs_.visit(e, [&](ExprId id) {
      if (pool_[id].kind != Expr::Kind::kLocal || pool_[id].id >= exprs_.sites.size()) return;
      const ReductionSite& i = exprs_.sites[pool_[id].id];
      level = std::max(level, i.level + 1);
      carried = carried || is_carried(i);
    });
    return level;
  }

  void draft_stores() {
    for (size_t k = 0; k < exprs_.roots.size(); ++k) {
      const Root& root = exprs_.roots[k];
      uint64_t vars = 0;
      for (VarId v : root.vars) vars |= bit(v);
      bool carried = false;
      const int level = level_of(root.expr, carried);
      const Store store{static_cast<uint32_t>(exprs_.inputs.size() + k), graph_.dtype(root.value), root.at,
                        resolve(root.expr), false};
      if (carried) {
        Draft* draft = nullptr;
        for (Draft& d : after_) {
          if (d.loops == inner(vars)) draft = &d;
        }
        if (draft == nullptr) {
          draft = &after_.emplace_back();
          draft->loops = draft->kept = inner(vars);
        }
        draft->stores.push_back(store);
      } else {
        sweep_over(inner(vars), level).stores.push_back(store);
      }
    }
  }

  // ---- Stages

  CudaStage finish(Draft& d) {
    CudaStage stage;
    stage.scan = d.scan;
    stage.async_copy = d.async_copy;
    transpose_loads(d, stage);
    stage.layout = d.layout;
    stage.unrolled = steps_of(d.layout) <= kMostSteps;
    for (CudaReduction& r : d.reductions) {
      const bool sum = r.combine == Combine::kSum && is_float(r.dtype);
      r.compensated = sum && r.over != CudaReduction::Over::kCarried && chain_of(d.layout) > kLongSum;
    }
    stage.reductions = std::move(d.reductions);
    stage.stores = std::move(d.stores);
    stage.cached = std::move(d.cached);
    for (CachedValue& k : stage.cached) {
      if (k.shared) k.buffer = keep_buffers_.at(k.local);
    }
    return stage;
  }

  // Loads side by side along the transposed variable go through a tile in shared memory.
  void transpose_loads(Draft& d, CudaStage& stage) {
    if (!mapping_.transposed) return;
    const VarId u = *mapping_.transposed, v = *mapping_.vector;
    const GridDim *block_u = blocked(u), *block_v = blocked(v);
    if (block_u == nullptr || block_v == nullptr || d.loops != (bit(u) | bit(v))) return;
    std::map<ExprId, ExprId> with;
    for (ExprId e : unconditional(pool_, roots_of(d))) {
      const Expr load = pool_[e];
      if (load.kind != Expr::Kind::kLoad || stride_along(pool_, load.index, u) != 1) continue;
      const auto stride = stride_along(pool_, load.index, v);
      if (!stride || *stride <= 1) continue;
      const DType dtype = compute_dtype(load.dtype);
      // An odd row keeps threads that walk down a column in different banks.
      const int64_t width = block_v->block + 1;
      if (!fits_shared(block_u->block * width * static_cast<int64_t>(size_of(dtype)))) continue;
      const uint32_t buffer = new_scratch(dtype, block_u->block * width);
      const Index at = pool_.indices.substitute(
          load.index, {{u, pool_.indices.var(block_u->start)}, {v, pool_.indices.var(block_v->start)}},
          [](ExprId same) { return same; });
      stage.transposed.push_back({load.id, load.dtype, at, *stride, u, buffer});
      const auto offset = [&](const GridDim& g) {
        return pool_.indices.add(pool_.indices.var(g.var), pool_.indices.scale(pool_.indices.var(g.start), -1));
      };
      const Index in_block = pool_.indices.add(pool_.indices.scale(offset(*block_u), width), offset(*block_v));
      with[e] = pool_.load(dtype, buffer, in_block);
    }
    if (with.empty()) return;
    replace(d, with);
    d.layout.vector = vector_for(d, v);
  }

  bool touches_scratch(const CudaStage& stage, bool& writes) const {
    std::vector<ExprId> roots;
    for (const CudaReduction& r : stage.reductions) {
      roots.push_back(r.value);
      writes = writes || r.scratch.has_value();
    }
    for (const Store& s : stage.stores) {
      roots.push_back(s.value);
      writes = writes || s.buffer >= first_scratch_;
    }
    bool reads = false;
    std::set<uint32_t> own;
    for (const TransposedLoad& t : stage.transposed) own.insert(t.scratch);
    visit_exprs(pool_, roots, [&](ExprId e) {
      const Expr& expr = pool_[e];
      reads = reads || (expr.kind == Expr::Kind::kLoad && expr.id >= first_scratch_ && own.count(expr.id) == 0);
    });
    return reads;
  }

  void mark_barriers(std::vector<CudaStage>& stages) {
    bool dirty = false;
    for (CudaStage& stage : stages) {
      bool writes = false;
      stage.sync = touches_scratch(stage, writes) && dirty;
      if (stage.sync) dirty = false;
      dirty = dirty || writes;
    }
  }

  // Copies are waited for where one of them is read first. A barrier behind them keeps the compiler from letting them
  // wait for what the next sweep loads, too.
  void mark_copies(std::vector<CudaStage>& stages) const {
    std::set<uint32_t> copied;
    for (size_t i = 0; i < stages.size(); ++i) {
      CudaStage& stage = stages[i];
      stage.sync = stage.sync || (i > 0 && stages[i - 1].async_copy && !stage.async_copy);
      std::vector<ExprId> roots;
      for (const CudaReduction& r : stage.reductions) roots.push_back(r.value);
      for (const CachedValue& k : stage.cached) roots.push_back(k.value);
      for (const Store& s : stage.stores) roots.push_back(s.value);
      visit_exprs(pool_, roots, [&](ExprId e) {
        stage.wait_async = stage.wait_async || (pool_[e].kind == Expr::Kind::kLocal && copied.count(pool_[e].id) != 0);
      });
      if (stage.wait_async) return;
      if (stage.async_copy) copied.insert(stage.cached[0].local);
    }
  }

  bool needs_wide_index() const {
    int64_t most = 1;
    for (const GridDim& d : mapping_.grid) most *= ceil_div(pool_.indices.extent(d.var), d.block);
    most = std::max<int64_t>(most * 2, 1);
    for (const InputOperand& leaf : exprs_.inputs) most = std::max(most, element_count(leaf.shape));
    for (const Root& root : exprs_.roots) most = std::max(most, element_count(graph_.shape(root.value)));
    const auto wide = [&](const Index& at) {
      const Range r = pool_.indices.range(at);
      return r.lo < INT32_MIN / 2 || r.hi > INT32_MAX / 2;
    };
    bool any = most > INT32_MAX / 2;
    for (ExprId e = 0; e < pool_.size(); ++e) any = any || wide(pool_[e].index);
    return any;
  }
};

}  // namespace

std::shared_ptr<CudaStitchDesc> build_cuda_stages(KernelExprs& exprs, const ir::Graph& graph,
                                                  const CudaMapping& mapping, const Target& target) {
  return CudaStageBuilder(exprs, graph, mapping, target.cuda).run();
}

}  // namespace heddle::schedule
