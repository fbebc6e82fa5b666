#include "schedule/region/stitch.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "schedule/expr/kernel_size.h"
#include "schedule/region/cuda/stitch.h"
#include "schedule/region/cut.h"
#include "schedule/region/kernel.h"
#include "schedule/region/standalone.h"

namespace heddle::schedule {

std::string_view to_string(Scheme scheme) {
  switch (scheme) {
    case Scheme::kIndependent:
      return "independent";
    case Scheme::kLocal:
      return "local";
    case Scheme::kRegional:
      return "regional";
    case Scheme::kCluster:
      return "cluster";
    case Scheme::kGlobal:
      return "global";
  }
  return "independent";
}

std::string_view to_string(Combine combine) {
  switch (combine) {
    case Combine::kSum:
      return "sum";
    case Combine::kProd:
      return "prod";
    case Combine::kMax:
      return "max";
    case Combine::kMin:
      return "min";
    case Combine::kAny:
      return "any";
    case Combine::kAll:
      return "all";
    case Combine::kArgMax:
      return "arg_max";
    case Combine::kArgMin:
      return "arg_min";
  }
  return "sum";
}

int64_t StitchDesc::grid_size() const {
  int64_t n = 1;
  for (const GridDim& dim : grid) n *= blocks(dim);
  return n;
}

namespace {

// Cuts a group into kernels: roots are the group's outputs and the values that one kernel hands to another.
class GroupScheduler {
 public:
  GroupScheduler(const ir::Graph& graph, const ir::Group& group, const Target& target, const StitchOptions& options)
      : target_(target), options_(options), local_(extract(graph, group)) {}

  ScheduledGroup run() {
    constexpr int kMaxSplits = 16;
    for (int splits = 0; splits < kMaxSplits;) {
      begin();
      while (!pending_.empty() && !split_ && !fold_ && !again_) next_kernel();
      if (fold_) {
        fold_reduction(local_, *fold_, parts_);
        cut_.clear();
        apart_.clear();
        ++splits;
      } else if (split_) {
        split_reduction(local_, *split_, parts_);
        cut_.clear();
        apart_.clear();
        boundaries_.clear();
        ++splits;
      } else if (!again_) {
        result_.boundaries = std::move(splits_);
        result_.boundaries.insert(result_.boundaries.end(), boundaries_.begin(), boundaries_.end());
        return std::move(result_);
      }
    }
    HEDDLE_CHECK(false, "no end of splitting reductions");
  }

 private:
  void begin() {
    result_ = {};
    pending_.clear();
    made_.clear();
    workspace_.clear();
    sources_.clear();
    split_.reset();
    fold_.reset();
    again_ = false;
    for (const auto& port : local_.graph.outputs()) {
      if (element_count(local_.graph.shape(port.value)) > 0) pending_.insert(port.value);
    }
    cut_.insert(local_.forced.begin(), local_.forced.end());
    for (ir::ValueId v : cuts_for_size(local_.graph)) {
      if (cut_.insert(v).second) note_cut(v, kTooLarge);
      apart_.insert(v);
    }
    pending_.insert(cut_.begin(), cut_.end());
    users_ = ir::users(local_.graph);
    if (!options_.data_reuse) cut_all_reductions();
  }

  void cut_all_reductions() {
    for (ir::ValueId v : read_reductions(local_.graph, users_)) {
      if (cut_.insert(v).second) note_cut(v, "results do not stay on chip");
      pending_.insert(v);
    }
  }

  bool is_input(ir::ValueId v) const {
    if (made_.count(v) != 0) return true;
    const ir::Node& node = local_.graph.producer(v);
    return node.op == ir::Op::kParameter;
  }

  bool is_scan(ir::ValueId v) const { return local_.graph.producer(v).op == ir::Op::kScan; }

  void next_kernel() {
    const ir::ValueId first = *pending_.begin();
    if (ir::is_standalone(local_.graph.producer(first).op)) return separate(local_.graph.producer(first));
    std::vector<ir::ValueId> roots = {first};
    const KernelContext context{local_.graph, [this](ir::ValueId v) { return is_input(v); },
                                [this](ir::ValueId v) { return cut_.count(v) != 0; },
                                [this](ir::ValueId v) -> std::optional<size_t> {
                                  const auto at = local_.part_dim.find(v);
                                  return at == local_.part_dim.end() ? std::nullopt : std::optional(at->second);
                                }};
    auto exprs = std::make_unique<KernelExprs>(context, roots);
    Outcome outcome = outcome_of(*exprs);
    if (!outcome.cuts.empty()) {
      if (exprs->too_large) apart_.insert(outcome.cuts.begin(), outcome.cuts.end());
      bool progress = false;
      for (ir::ValueId v : outcome.cuts) {
        if (cut_.insert(v).second) {
          progress = true;
          note_cut(v, outcome.reason);
        }
        pending_.insert(v);
      }
      HEDDLE_CHECK(progress, "a cut repeats");
      // A kernel that is made already may be the one to hand the new value over, so the group begins again. A value
      // that is too large for its reader gets a kernel of its own: a new beginning for each takes quadratic time.
      again_ = !result_.kernels.empty() && !exprs->too_large;
      return;
    }
    HEDDLE_CHECK(outcome.mapping.has_value(), "{}", outcome.reason);
    if (outcome.fold && local_.folded.count(*outcome.fold) == 0) {
      fold_ = outcome.fold;
      parts_ = outcome.fold_rows;
      return;
    }
    if (outcome.split && local_.whole.count(*outcome.split) == 0) {
      split_ = outcome.split;
      parts_ = outcome.parts;
      splits_.push_back({fmt::format("{} parts of reduce {}", parts_, ir::to_string(local_.graph.type(*split_))),
                         static_cast<double>(parts_) * bytes_of(*split_), outcome.reason});
      return;
    }
    const double bytes = work_of(*exprs, local_.graph, target_.cpu).bytes;
    // Other roots that fit the same grid come along, unless they need something that is made only by this kernel.
    for (ir::ValueId other : pending_) {
      if (!options_.dominant_merging || is_scan(first) || is_scan(other)) continue;
      if (other == first || roots.size() >= 16 || !sources_.related(roots, other) || reads_forced(other, roots))
        continue;
      std::vector<ir::ValueId> more = roots;
      more.push_back(other);
      std::unique_ptr<KernelExprs> wider;
      Outcome joined;
      try {
        wider = std::make_unique<KernelExprs>(context, more);
        joined = outcome_of(*wider);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kUnsupportedOperator) throw;
        continue;  // too much for one kernel
      }
      if (!joined.mapping || !joined.cuts.empty() || (joined.split && !outcome.split)) continue;
      const int64_t now = grid_of(*exprs, *outcome.mapping), then = grid_of(*wider, *joined.mapping);
      if (then < std::min<int64_t>(now, target_.cpu.threads)) continue;
      // What an iteration sweeps over several times is to stay in L2.
      if (then < now && bytes / static_cast<double>(then) > static_cast<double>(target_.cpu.l2_bytes)) continue;
      roots = std::move(more);
      exprs = std::move(wider);
      outcome = std::move(joined);
    }
    if (share_by_parts(roots, bytes)) return;
    emit(*exprs, *outcome.mapping);
    for (const Root& root : exprs->roots) {
      made_.insert(root.value);
      pending_.erase(root.value);
    }
  }

  // A node with a kernel of its own: its operands are made first.
  void separate(const ir::Node& node) {
    const auto make_first = [this](ir::ValueId v, const std::string& reason) {
      cut_.insert(v);
      pending_.insert(v);
      note_cut(v, reason);
    };
    std::optional<ScheduledKernel> kernel = standalone_kernel(
        local_.graph, node, target_, [this](ir::ValueId v) { return is_input(v); }, make_first,
        [this](ir::ValueId v) { return binding(v); });
    if (!kernel) {
      again_ = !result_.kernels.empty();
      return;
    }
    for (ir::ValueId v : node.outputs) {
      made_.insert(v);
      pending_.erase(v);
    }
    result_.kernels.push_back(std::move(*kernel));
  }

  // A reduction down the columns of what this kernel reads row by row: in parts of as many rows as L2 holds it joins
  // this kernel, which then reads the data once for both.
  bool share_by_parts(const std::vector<ir::ValueId>& roots, double bytes) {
    const auto l2 = static_cast<double>(target_.cpu.l2_bytes);
    if (!options_.dominant_merging || !options_.adaptive_mapping || bytes < 2 * l2) return false;
    const int64_t size = element_count(local_.graph.shape(roots[0]));
    for (const ir::ValueId other : pending_) {
      if (std::find(roots.begin(), roots.end(), other) != roots.end() || !sources_.related(roots, other)) continue;
      const std::optional<ir::ValueId> reduction = column_reduction(other, size);
      if (!reduction || local_.whole.count(*reduction) != 0) continue;
      split_ = reduction;
      parts_ = static_cast<int64_t>(2 * bytes / l2) + 1;
      splits_.push_back(
          {fmt::format("{} parts of reduce {}", parts_, ir::to_string(local_.graph.type(*split_))),
           static_cast<double>(parts_) * bytes_of(*split_),
           fmt::format("its parts share one read of {:.3g} MB with the rows that L2 holds", bytes * 1e-6)});
      return true;
    }
    return false;
  }

  // The reduction of `size` elements, over dimensions before its last one, from which elementwise nodes make a root.
  std::optional<ir::ValueId> column_reduction(ir::ValueId root, int64_t size) const {
    const ir::Graph& graph = local_.graph;
    for (ir::ValueId v = root; !is_input(v);) {
      const ir::Node& node = graph.producer(v);
      if (node.op == ir::Op::kReduce) {
        const Shape& from = graph.shape(node.inputs[0]);
        const auto& dims = node.attrs.ints("dims");
        const bool columns = !dims.empty() && dims.back() + 1 < static_cast<int64_t>(from.size());
        return columns && element_count(from) == size ? std::optional(v) : std::nullopt;
      }
      if (!ir::is_elementwise(node.op) && node.op != ir::Op::kReshape) return std::nullopt;
      const auto larger = std::max_element(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId a, ir::ValueId b) {
        return graph.producer(a).op == ir::Op::kBroadcast && graph.producer(b).op != ir::Op::kBroadcast;
      });
      v = *larger;
    }
    return std::nullopt;
  }

  static int64_t grid_of(const KernelExprs& exprs, const Mapping& mapping) {
    int64_t n = 1;
    for (const GridDim& d : mapping.grid) n *= (exprs.pool.indices.extent(d.var) + d.block - 1) / d.block;
    return n;
  }

  Outcome outcome_of(KernelExprs& exprs) {
    if (!exprs.needed.empty()) {
      Outcome outcome;
      for (ir::ValueId v : exprs.needed) outcome.cuts.insert(v);
      outcome.reason = exprs.too_large ? kTooLarge : "it is computed by a kernel of its own";
      return outcome;
    }
    if (!exprs.fits) return {};
    std::set<ir::ValueId> roots;
    for (const Root& root : exprs.roots) roots.insert(root.value);
    return map_kernel(exprs, local_.graph, target_, options_,
                      [&](ir::ValueId v) { return frontier(local_.graph, users_, v, roots); });
  }

  // The second step of a split reduction waits for the first; where results do not stay on chip, every reader waits.
  bool reads_forced(ir::ValueId other, const std::vector<ir::ValueId>& roots) {
    const auto forced = [this](ir::ValueId v) {
      return apart_.count(v) != 0 || (options_.data_reuse ? local_.forced : cut_).count(v) != 0;
    };
    return std::any_of(roots.begin(), roots.end(), [&](ir::ValueId root) {
      return (forced(root) && sources_.of(other).count(root) != 0) ||
             (forced(other) && sources_.of(root).count(other) != 0);
    });
  }

  double bytes_of(ir::ValueId v) const {
    const ir::TensorType& type = local_.graph.type(v);
    return static_cast<double>(element_count(type.shape)) * static_cast<double>(size_of(type.dtype));
  }

  void note_cut(ir::ValueId v, const std::string& reason) {
    boundaries_.push_back(
        {fmt::format("{} {}", ir::to_string(local_.graph.producer(v).op), ir::to_string(local_.graph.type(v))),
         bytes_of(v), reason});
  }

  void emit(KernelExprs& exprs, const Mapping& mapping) {
    ScheduledKernel kernel;
    const Work work = work_of(exprs, local_.graph, target_.cpu);
    kernel.floor_seconds = work.seconds(target_.cpu);
    kernel.config.tasks = mapping.tasks;
    kernel.config.lanes = target_.cpu.lanes_f32();
    kernel.config.reason = mapping.reason;
    for (const InputOperand& leaf : exprs.inputs) {
      kernel.desc.operands.push_back({Operand::Role::kInput, leaf.dtype, leaf.shape, {}});
      kernel.bindings.push_back(binding(leaf.value));
    }
    for (const Root& root : exprs.roots) {
      const ir::TensorType& type = local_.graph.type(root.value);
      kernel.desc.operands.push_back({Operand::Role::kOutput, type.dtype, type.shape, {}});
      kernel.bindings.push_back(binding(root.value));
    }
    const std::string title = title_of(local_.graph, exprs, [this](ir::ValueId v) { return is_input(v); });
    auto desc = build_stages(exprs, local_.graph, mapping, target_, options_);
    desc->title = title;
    kernel.label = "stitch " + title;
    kernel.stitch = facts_of(*desc, mapping, work);
    kernel.desc.body = std::shared_ptr<const StitchDesc>(std::move(desc));
    result_.kernels.push_back(std::move(kernel));
  }

  StitchFacts facts_of(const StitchDesc& desc, const Mapping& mapping, const Work& work) const {
    StitchFacts facts;
    facts.schemes = desc.schemes;
    facts.bytes_moved = work.bytes;
    for (const Scratch& s : desc.scratch) facts.on_chip_bytes += s.elements * static_cast<int64_t>(size_of(s.dtype));
    const auto workers = static_cast<double>(std::clamp<int64_t>(mapping.tasks, 1, target_.cpu.threads));
    facts.predicted_seconds = work.seconds(target_.cpu) / workers + (workers > 1 ? target_.cpu.barrier_us * 1e-6 : 0);
    std::vector<std::string> dims;
    for (const GridDim& d : desc.grid) {
      dims.push_back(d.block > 1 ? fmt::format("{} blocks of {}", desc.blocks(d), d.block)
                                 : fmt::format("{}", desc.pool.indices.extent(d.var)));
    }
    std::vector<std::string> sweeps;
    for (const Stage& stage : desc.stages) {
      std::vector<std::string> loops;
      for (VarId v : stage.loops) {
        const auto block =
            std::find_if(desc.grid.begin(), desc.grid.end(), [&](const GridDim& d) { return d.var == v; });
        loops.push_back(fmt::format("{}", block == desc.grid.end() ? desc.pool.indices.extent(v) : block->block));
      }
      sweeps.push_back(loops.empty() ? "1" : fmt::format("{}{}", fmt::join(loops, "x"), stage.vector ? "v" : ""));
    }
    facts.mapping =
        fmt::format("grid {}, {} tasks, sweeps over {}", dims.empty() ? "1" : fmt::format("{}", fmt::join(dims, " x ")),
                    mapping.tasks, fmt::join(sweeps, ", "));
    return facts;
  }

  Binding binding(ir::ValueId v) {
    if (const auto at = local_.outer.find(v); at != local_.outer.end()) return {Binding::Kind::kValue, at->second, 0};
    const auto [at, is_new] = workspace_.try_emplace(v, static_cast<uint32_t>(result_.workspaces.size()));
    if (is_new) {
      const ir::TensorType& type = local_.graph.type(v);
      result_.workspaces.push_back({element_count(type.shape) * static_cast<int64_t>(size_of(type.dtype))});
    }
    return {Binding::Kind::kWorkspace, 0, at->second};
  }

  const Target& target_;
  const StitchOptions& options_;
  LocalGraph local_;
  ScheduledGroup result_;
  std::set<ir::ValueId> pending_, made_, cut_;
  std::set<ir::ValueId> apart_;  // cut because one kernel would be too large
  std::optional<ir::ValueId> split_, fold_;
  int64_t parts_ = 0;
  bool again_ = false;
  std::vector<Boundary> boundaries_, splits_;
  std::vector<std::vector<ir::NodeId>> users_;
  Sources sources_{local_, [this](ir::ValueId v) { return is_input(v); }};
  std::map<ir::ValueId, uint32_t> workspace_;
};

}  // namespace

ScheduledGroup schedule_stitch(const ir::Graph& graph, const ir::Group& group, const Target& target,
                               const StitchOptions& options) {
  if (target.kind == TargetKind::kCuda) return schedule_cuda_stitch(graph, group, target, options);
  return GroupScheduler(graph, group, target, options).run();
}

}  // namespace heddle::schedule
