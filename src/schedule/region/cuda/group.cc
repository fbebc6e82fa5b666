#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "base/check.h"
#include "schedule/expr/kernel_size.h"
#include "schedule/region/cuda/bundle.h"
#include "schedule/region/cuda/cta_group.h"
#include "schedule/region/cuda/kernel.h"
#include "schedule/region/cut.h"
#include "schedule/region/standalone.h"
#include "schedule/region/statistics.h"

namespace heddle::schedule {
namespace {

constexpr size_t kMostRoots = 48;    // of one kernel; each is a pointer and an address computation
constexpr int64_t kShortCarry = 64;  // rows below which a column reduction is not carried along
constexpr int64_t kBlockTurns = 8;   // rows that the teams of a block should have at least

// Cuts a group into kernels for a GPU: roots are the group's outputs and the values that one kernel hands to another.
class CudaGroupScheduler {
 public:
  CudaGroupScheduler(const ir::Graph& graph, const ir::Group& group, const Target& target, const StitchOptions& options)
      : outer_(graph),
        group_(group),
        target_(target),
        cuda_(target.cuda),
        options_(options),
        local_(extract(graph, group)) {}

  ScheduledGroup run() {
    constexpr int kMaxSplits = 24;
    if (options_.adaptive_mapping) split_statistics();
    if (options_.adaptive_mapping && options_.dominant_merging) carry_columns();
    for (int splits = 0; splits < kMaxSplits;) {
      begin();
      while (!pending_.empty() && !split_ && !again_) next_kernel();
      if (split_) {
        split_reduction(local_, *split_, parts_);
        joint_.clear();  // values have other numbers now
        boundaries_.clear();
        cut_.clear();
        apart_.clear();
        ++splits;
      } else if (!again_) {
        result_.boundaries = std::move(boundaries_);
        keep_wanted();
        return options_.dominant_merging ? bundle_cuda_kernels(std::move(result_)) : std::move(result_);
      }
    }
    HEDDLE_CHECK(false, "no end of splitting reductions");
  }

 private:
  // One pass over rows that also sums their columns: the root that spans the rows, and the columns' partial results.
  struct Joint {
    ir::ValueId rows;
    std::vector<ir::ValueId> partials;
    std::vector<int64_t> extents;
  };

  void begin() {
    result_ = {};
    written_.clear();
    pending_.clear();
    made_.clear();
    workspace_.clear();
    sources_.clear();
    split_.reset();
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
    return made_.count(v) != 0 || local_.graph.producer(v).op == ir::Op::kParameter;
  }
  bool is_scan(ir::ValueId v) const { return local_.graph.producer(v).op == ir::Op::kScan; }
  KernelContext context() const {
    return {local_.graph,
            [this](ir::ValueId v) { return is_input(v); },
            [this](ir::ValueId v) { return cut_.count(v) != 0; },
            {},
            true};
  }

  // Without adaptive mapping every iteration that reduces is a block's.
  ForcedMapping mapping() const {
    const bool model = options_.mapping == ForcedMapping::kNone;
    return model && !options_.adaptive_mapping ? ForcedMapping::kBlock : options_.mapping;
  }

  CudaOutcome outcome_of(KernelExprs& exprs, bool carry = false) {
    if (!exprs.needed.empty()) {
      CudaOutcome outcome;
      for (ir::ValueId v : exprs.needed) outcome.cuts.insert(v);
      outcome.reason = exprs.too_large ? kTooLarge : "it is computed by a kernel of its own";
      return outcome;
    }
    if (!exprs.fits) return {};
    std::set<ir::ValueId> roots;
    for (const Root& root : exprs.roots) roots.insert(root.value);
    return map_cuda(
        exprs, local_.graph, target_, [&](ir::ValueId v) { return frontier(local_.graph, users_, v, roots); }, carry,
        mapping());
  }

  void next_kernel() {
    if (next_joint()) return;
    const ir::ValueId first = *pending_.begin();
    if (ir::is_standalone(local_.graph.producer(first).op)) return separate(local_.graph.producer(first));
    const KernelContext around = context();
    std::vector<ir::ValueId> roots = {first};
    auto exprs = std::make_unique<KernelExprs>(around, roots);
    CudaOutcome outcome = outcome_of(*exprs);
    if (!outcome.cuts.empty()) {
      if (exprs->too_large) apart_.insert(outcome.cuts.begin(), outcome.cuts.end());
      bool progress = false;
      for (ir::ValueId v : outcome.cuts) {
        progress = cut_.insert(v).second || progress;
        pending_.insert(v);
        note_cut(v, outcome.reason);
      }
      HEDDLE_CHECK(progress, "a cut repeats");
      // A kernel that is made already may be the one to hand the new value over, so the group begins again. A value
      // that is too large for its reader gets a kernel of its own: a new beginning for each takes quadratic time.
      again_ = !result_.kernels.empty() && !exprs->too_large;
      return;
    }
    HEDDLE_CHECK(outcome.mapping.has_value(), "{}", outcome.reason);
    if (outcome.split && local_.whole.count(*outcome.split) == 0) {
      split_ = outcome.split;
      parts_ = outcome.parts;
      return;
    }
    for (ir::ValueId other : pending_) {
      if (!options_.dominant_merging || roots.size() >= kMostRoots || is_scan(first) || is_scan(other)) continue;
      if (other == first || !worth_joining(roots, other, outcome.mapping->team) || reads_forced(other, roots)) continue;
      std::vector<ir::ValueId> more = roots;
      more.push_back(other);
      try {
        auto wider = std::make_unique<KernelExprs>(around, more);
        CudaOutcome joined = outcome_of(*wider);
        if (!joined.mapping || (joined.split && !outcome.split)) continue;
        KernelExprs alone(around, {other});
        const CudaOutcome other_outcome = outcome_of(alone);
        // What needs a value of this kernel would have to wait for it.
        const double apart = other_outcome.mapping ? other_outcome.seconds : outcome.seconds;
        if (joined.seconds > outcome.seconds + apart) continue;
        roots = std::move(more);
        exprs = std::move(wider);
        outcome = std::move(joined);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kUnsupportedOperator) throw;  // else too much for one kernel
      }
    }
    finish_kernel(*exprs, outcome);
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
    written_.push_back(nullptr);
    result_.kernels.push_back(std::move(*kernel));
  }

  // Roots that read a common value share its reading; others of the same shape may share the launch, unless they go
  // beside each other (cuda_bundle.h) instead of one after the other on the same threads.
  bool worth_joining(const std::vector<ir::ValueId>& roots, ir::ValueId other, int team) {
    return (team > 1 && local_.graph.shape(roots[0]) == local_.graph.shape(other)) || sources_.related(roots, other);
  }

  void finish_kernel(KernelExprs& exprs, const CudaOutcome& outcome) {
    emit(exprs, outcome);
    for (const Root& root : exprs.roots) {
      made_.insert(root.value);
      pending_.erase(root.value);
    }
  }

  // ---- Statistics of columns in one pass

  // Whether a cluster keeps the columns for an output that spans them again.
  bool stays_on_chip(const Deviation& deviation) const {
    const int64_t size = element_count(local_.graph.shape(deviation.x));
    const auto& outputs = local_.graph.outputs();
    const bool again = std::any_of(outputs.begin(), outputs.end(), [&](const auto& port) {
      return element_count(local_.graph.shape(port.value)) >= size;
    });
    const auto bytes = static_cast<int64_t>(size_of(local_.graph.dtype(source_of(deviation.x))));
    const int64_t columns = size / deviation.rows;
    const int vector = static_cast<int>(std::gcd(columns, 16 / bytes));
    return again && cta_group_for_columns(cuda_, deviation.rows, columns, 1, vector, bytes).has_value();
  }
  // What is read for a value that casts alone make of it.
  ir::ValueId source_of(ir::ValueId v) const {
    while (local_.graph.producer(v).op == ir::Op::kCast) v = local_.graph.producer(v).inputs[0];
    return v;
  }

  void split_statistics() {
    constexpr int64_t kWorthwhile = 1 << 18;  // elements; fewer are read twice at no cost
    constexpr int kMost = 8;
    for (int done = 0; done < kMost; ++done) {
      bool found = false;
      for (ir::NodeId id = 0; id < local_.graph.nodes().size() && !found; ++id) {
        const auto deviation = find_deviation(local_.graph, id);
        if (!deviation || local_.whole.count(deviation->value) != 0) continue;
        const int64_t size = element_count(local_.graph.shape(deviation->x)), rows = deviation->rows;
        if (size < kWorthwhile || stays_on_chip(*deviation)) continue;
        const int64_t blocks = (size / rows + 31) / 32;
        const int64_t wanted = std::max<int64_t>(2, 4 * cuda_.sms / blocks);
        int64_t parts = std::min(wanted, rows / 16);
        while (parts > 1 && rows % parts != 0) --parts;
        if (parts < 2 || parts < wanted / 4) continue;
        split_deviation(local_, *deviation, parts);
        found = true;
      }
      if (!found) return;
    }
  }

  // ---- Column reductions that ride along

  void carry_columns() {
    users_ = ir::users(local_.graph);
    std::set<ir::ValueId> spans;  // outputs over whole rows
    for (const auto& port : local_.graph.outputs()) spans.insert(port.value);
    struct Found {
      ir::ValueId value, rows;
      int64_t parts;
    };
    std::vector<Found> found;
    std::map<ir::ValueId, int64_t> parts_of_rows;
    for (const ir::Node& node : local_.graph.nodes()) {
      if (node.op != ir::Op::kReduce) continue;
      const std::vector<int64_t>& dims = node.attrs.ints("dims");
      const Shape& shape = local_.graph.shape(node.inputs[0]);
      int64_t rows = 1;
      bool leading = !dims.empty() && dims.size() < shape.size();
      for (size_t k = 0; k < dims.size(); ++k) {
        leading = leading && dims[k] == static_cast<int64_t>(k);
        rows *= shape[k];
      }
      if (!leading || rows < kShortCarry || element_count(shape) < (1 << 16)) continue;
      for (ir::ValueId span : spans) {
        if (element_count(local_.graph.shape(span)) != element_count(shape) || is_scan(span)) continue;
        if (!sources_.related({span}, node.outputs[0]) || sources_.of(span).count(node.outputs[0]) != 0) continue;
        const int64_t parts = parts_for(rows);
        if (parts == 0) break;
        found.push_back({node.outputs[0], span, parts});
        break;
      }
    }
    for (const Found& f : found) carry(current(f.value), f.rows, f.parts);
    sources_.clear();
  }

  // A divisor of the rows near the number of blocks that the device holds.
  int64_t parts_for(int64_t rows) const {
    int64_t best = 0;
    for (int64_t p = std::min<int64_t>(2 * cuda_.sms, rows / kBlockTurns); p > 1; --p) {
      if (rows % p == 0 && rows / p != p) {
        best = p;
        break;
      }
    }
    return best >= std::min<int64_t>(cuda_.sms / 2, rows / kBlockTurns / 2) ? best : 0;
  }

  void carry(ir::ValueId value, ir::ValueId rows, int64_t parts) {
    const Shape shape = local_.graph.shape(local_.graph.producer(value).inputs[0]);
    const size_t reduced = local_.graph.producer(value).attrs.ints("dims").size();
    std::map<ir::ValueId, ir::ValueId> moved;
    const ir::ValueId partial = split_rows(local_, value, parts, moved);
    int64_t length = 1;
    for (size_t k = 0; k < reduced; ++k) length *= shape[k];
    std::vector<int64_t> extents = {length / parts, parts};
    for (size_t k = reduced; k < shape.size(); ++k) {
      if (shape[k] != 1) extents.push_back(shape[k]);
    }
    for (Joint& joint : joint_) {
      joint.rows = moved.at(joint.rows);
      for (ir::ValueId& v : joint.partials) v = moved.at(v);
    }
    moved_.push_back(moved);
    const ir::ValueId now = current(rows);
    for (Joint& joint : joint_) {
      if (joint.rows == now && joint.extents == extents) {
        joint.partials.push_back(partial);
        return;
      }
    }
    joint_.push_back({now, {partial}, std::move(extents)});
  }
  ir::ValueId current(ir::ValueId original) const {
    for (const auto& m : moved_) original = m.at(original);
    return original;
  }

  bool next_joint() {
    for (size_t k = 0; k < joint_.size(); ++k) {
      const Joint joint = joint_[k];
      joint_.erase(joint_.begin() + static_cast<ptrdiff_t>(k));
      std::vector<ir::ValueId> roots = {joint.rows};
      for (ir::ValueId v : joint.partials) {
        if (pending_.count(v) != 0) roots.push_back(v);
      }
      if (roots.size() == 1 || pending_.count(joint.rows) == 0) return next_joint();
      try {
        KernelExprs exprs(context(), roots, joint.extents);
        const CudaOutcome outcome = outcome_of(exprs, true);
        if (!outcome.mapping || !outcome.mapping->serial) return next_joint();
        finish_kernel(exprs, outcome);
        return true;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kUnsupportedOperator) throw;
        return next_joint();
      }
    }
    return false;
  }

  // ---- What roots depend on

  // The second step of a split reduction waits for the first; where results do not stay on chip, every reader waits.
  bool reads_forced(ir::ValueId other, const std::vector<ir::ValueId>& roots) {
    const auto forced = [this](ir::ValueId v) {
      return apart_.count(v) != 0 || (options_.data_reuse ? local_.forced : cut_).count(v) != 0;
    };
    return std::any_of(roots.begin(), roots.end(), [&](ir::ValueId root) {
      if (local_.paired.count({other, root}) != 0 || local_.paired.count({root, other}) != 0) return false;
      return (forced(root) && sources_.of(other).count(root) != 0) ||
             (forced(other) && sources_.of(root).count(other) != 0);
    });
  }

  void note_cut(ir::ValueId v, const std::string& reason) {
    const ir::TensorType& type = local_.graph.type(v);
    boundaries_.push_back({fmt::format("{} {}", ir::to_string(local_.graph.producer(v).op), ir::to_string(type)),
                           static_cast<double>(element_count(type.shape) * static_cast<int64_t>(size_of(type.dtype))),
                           reason});
  }

  // ---- Output

  void emit(KernelExprs& exprs, const CudaOutcome& outcome) {
    const CudaMapping& mapping = *outcome.mapping;
    ScheduledKernel kernel;
    const Work work = work_of(exprs, local_.graph, target_.cpu);
    kernel.floor_seconds = work.bytes / (cuda_.model.chip.copy_tbps * 1e12);
    kernel.config.tasks = mapping.blocks;
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
    auto desc = build_cuda_stages(exprs, local_.graph, mapping, target_);
    desc->title = title;
    kernel.label = "stitch " + title;
    for (const SchemeChoice& choice : desc->schemes) {
      result_.notes.push_back(fmt::format("{}{}: {}, {}", choice.dominant ? "" : "sub-dominant ", choice.value,
                                          to_string(choice.scheme), choice.reason));
    }
    kernel.stitch.mapping = mapping.reason;
    kernel.stitch.schemes = desc->schemes;
    for (const Scratch& s : desc->scratch) {
      kernel.stitch.on_chip_bytes += s.elements * static_cast<int64_t>(size_of(s.dtype)) * desc->teams();
    }
    kernel.stitch.bytes_moved = work.bytes;
    kernel.stitch.predicted_seconds = outcome.seconds;
    // Where a kernel writes more than the L2 holds, forgetting what it reads saves nothing.
    if (work.bytes > 1.5 * static_cast<double>(cuda_.l2_bytes)) desc->evict_first.clear();
    written_.push_back(desc);
    kernel.desc.body = std::shared_ptr<const CudaStitchDesc>(std::move(desc));
    result_.kernels.push_back(std::move(kernel));
  }

  // The L2 may forget only what the model is given and one kernel alone reads.
  void keep_wanted() {
    std::map<ir::ValueId, uint32_t> own_uses;
    for (ir::NodeId id : group_.nodes) {
      for (ir::ValueId v : outer_.node(id).inputs) ++own_uses[v];
    }
    std::map<ir::ValueId, int> readers;
    for (const ScheduledKernel& kernel : result_.kernels) {
      for (const Binding& b : kernel.bindings) readers[b.value] += b.kind == Binding::Kind::kValue;
    }
    for (size_t k = 0; k < result_.kernels.size(); ++k) {
      if (written_[k] == nullptr) continue;
      std::erase_if(written_[k]->evict_first, [&](uint32_t operand) {
        const Binding& b = result_.kernels[k].bindings[operand];
        return b.kind != Binding::Kind::kValue || outer_.producer(b.value).op != ir::Op::kParameter ||
               readers[b.value] > 1 || own_uses[b.value] != outer_.value(b.value).uses;
      });
    }
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

  const ir::Graph& outer_;
  const ir::Group& group_;
  const Target& target_;
  const CudaTarget& cuda_;
  const StitchOptions options_;
  LocalGraph local_;
  ScheduledGroup result_;
  std::vector<Joint> joint_;
  std::vector<std::shared_ptr<CudaStitchDesc>> written_;  // of the kernels; null: one of its own
  std::vector<std::map<ir::ValueId, ir::ValueId>> moved_;
  std::set<ir::ValueId> pending_, made_, cut_;
  std::set<ir::ValueId> apart_;  // cut because one kernel would be too large
  std::optional<ir::ValueId> split_;
  int64_t parts_ = 0;
  bool again_ = false;
  std::vector<Boundary> boundaries_;
  std::vector<std::vector<ir::NodeId>> users_;
  Sources sources_{local_, [this](ir::ValueId v) { return is_input(v); }};
  std::map<ir::ValueId, uint32_t> workspace_;
};

}  // namespace

ScheduledGroup schedule_cuda_stitch(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                    const StitchOptions& options) {
  return CudaGroupScheduler(graph, group, target, options).run();
}

}  // namespace heddle::schedule
