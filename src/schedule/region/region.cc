#include "schedule/region/region.h"

#include <algorithm>

#include "base/check.h"
#include "schedule/expr/kernel_size.h"
#include "schedule/region/exprs/targets.h"
#include "schedule/region/planned.h"
#include "schedule/region/repeats.h"
#include "schedule/region/standalone.h"

namespace heddle::schedule {

namespace {

constexpr uint32_t kNoBoundary = ~0u;  // of a value that is apart from all others

}  // namespace

Region::Region(const ir::Graph& graph, const ir::Group& members, const Target& machine, const StitchOptions& choices)
    : outer(graph),
      group(members),
      target(machine),
      options(choices),
      local(extract(graph, members)),
      sources(local, [this](ir::ValueId v) { return is_input(v); }) {}

bool Region::is_input(ir::ValueId v) const {
  return made.count(v) != 0 || local.graph.producer(v).op == ir::Op::kParameter;
}

ValueMemory Region::memory_of(ir::ValueId v) const {
  const auto whole = local.outer.find(v);
  const auto placed = whole == local.outer.end() ? group.placed.end() : group.placed.find(whole->second);
  if (placed == group.placed.end()) return {local.graph.shape(v)};
  return {placed->second.shape, &placed->second};
}

double Region::bytes_of(ir::ValueId v) const {
  const ir::TensorType& type = local.graph.type(v);
  return static_cast<double>(element_count(type.shape)) * static_cast<double>(size_of(type.dtype));
}

bool Region::reads_forced(ir::ValueId other, const std::vector<ir::ValueId>& roots) {
  const auto forced = [this](ir::ValueId v) {
    return apart.count(v) != 0 || (options.data_reuse ? local.forced : cut).count(v) != 0;
  };
  const auto together = [this](ir::ValueId a, ir::ValueId b) {
    const auto first = apart.find(a), second = apart.find(b);
    const bool both = first != apart.end() && second != apart.end();
    return both && first->second == second->second && first->second != kNoBoundary;
  };
  return std::any_of(roots.begin(), roots.end(), [&](ir::ValueId root) {
    if (together(root, other)) return false;
    if (local.paired.count({other, root}) != 0 || local.paired.count({root, other}) != 0) return false;
    return (forced(root) && sources.depends(other, root)) || (forced(other) && sources.depends(root, other));
  });
}

RegionBackend::RegionBackend(Region& region)
    : region_(region),
      context_{region.local.graph, [&region](ir::ValueId v) { return region.is_input(v); },
               [&region](ir::ValueId v) { return region.cut.count(v) != 0; }} {
  context_.memory_of = [&region](ir::ValueId v) { return region.memory_of(v); };
}

const std::vector<RegionBackend::Planned>& RegionBackend::planned() const {
  static const std::vector<Planned> none;
  return none;
}

Candidate RegionBackend::candidate(std::vector<ir::ValueId> roots, const std::optional<RowParts>& parts) {
  const std::set<ir::ValueId> own(roots.begin(), roots.end());
  Candidate made{std::make_unique<KernelExprs>(context_, std::move(roots), parts), {}};
  const KernelExprs& exprs = *made.exprs;
  if (!exprs.needed.empty()) {
    made.result.cuts = exprs.needed;
    made.result.reason = exprs.too_large ? kTooLarge : "it is computed by a kernel of its own";
  } else if (exprs.fits) {
    made.result = map(
        *made.exprs, [&](ir::ValueId v) { return frontier(region_.local.graph, region_.users, v, own); },
        parts.has_value());
  }
  return made;
}

namespace {

// Whether one kernel makes all that its roots need, no matter what other kernels make.
bool is_whole(const Candidate& kernel) {
  const MapResult& result = kernel.result;
  return result.mapping != nullptr && result.cuts.empty() && !result.split;
}

class RegionScheduler {
 public:
  RegionScheduler(Region& region, RegionBackend& backend)
      : region_(region),
        backend_(backend),
        repeats_(backend.context(), [&region](ir::ValueId v) { return region.apart.count(v) != 0; }),
        planned_(region) {}

  ScheduledGroup run() {
    constexpr int kMostRewrites = 24;
    backend_.prepare();
    for (int rewrites = 0; rewrites < kMostRewrites;) {
      begin();
      while (!region_.pending.empty() && !rewritten_ && !again_) next_kernel();
      if (!rewritten_ && !again_) cut_repeated();
      if (rewritten_) {
        ++rewrites;
      } else if (!again_) {
        result_.boundaries = std::move(splits_);
        result_.boundaries.insert(result_.boundaries.end(), boundaries_.begin(), boundaries_.end());
        result_.most_repeats = repeats_.most();
        return backend_.finish(std::move(result_));
      }
    }
    HEDDLE_CHECK(false, "no end of splitting reductions");
  }

 private:
  void begin() {
    result_ = {};
    planned_.clear();
    workspace_.clear();
    repeats_.clear();
    rewritten_ = again_ = false;
    region_.pending.clear();
    region_.made.clear();
    region_.sources.clear();
    for (const auto& port : graph().outputs()) {
      if (element_count(graph().shape(port.value)) > 0) region_.pending.insert(port.value);
    }
    region_.cut.insert(region_.local.forced.begin(), region_.local.forced.end());
    for (const auto& [v, boundary] : cuts_for_size(graph())) {
      cut(v, kTooLarge);
      region_.apart.emplace(v, boundary);
    }
    region_.pending.insert(region_.cut.begin(), region_.cut.end());
    region_.users = ir::users(graph());
    if (region_.options.data_reuse) return;
    for (ir::ValueId v : read_reductions(graph(), region_.users)) cut(v, "results do not stay on chip");
  }

  void next_kernel() {
    if (next_planned()) return;
    const ir::ValueId first = *region_.pending.begin();
    const ir::Node& node = graph().producer(first);
    if (ir::is_standalone(node.op) && !scatters_one_row(backend_.context(), node)) return separate(node);
    Candidate kernel = backend_.candidate({first});
    std::vector<ir::ValueId> roots = {first};
    if (!is_whole(kernel)) join_whole(roots, kernel);
    const MapResult& found = kernel.result;
    if (!found.cuts.empty()) return cut_for(kernel);
    HEDDLE_CHECK(found.mapping != nullptr, "{}", found.reason);
    if (found.fold && region_.local.folded.count(*found.fold) == 0) {
      return renumber(fold_reduction(region_.local, *found.fold, found.fold_rows));
    }
    if (found.split && region_.local.whole.count(*found.split) == 0) {
      return split({*found.split, found.parts, found.reason});
    }
    join_others(std::move(roots), {}, kernel);
    if (const auto shared = backend_.shares_read(kernel)) return split(*shared);
    emit(kernel);
  }

  bool next_planned() {
    const std::vector<RegionBackend::Planned>& planned = backend_.planned();
    while (const auto ready = planned_.next(planned)) {
      const std::optional<RowParts> parts = planned[ready->number].parts;
      bool made = false;
      attempt([&] {
        Candidate kernel = backend_.candidate(ready->roots, parts);
        if (kernel.result.mapping == nullptr) return wait(*ready, kernel);
        join_others(ready->roots, parts, kernel);
        emit(kernel);
        made = true;
      });
      if (made || again_) return true;
    }
    return false;
  }

  // A planned kernel waits until the values that it cannot compute itself are there.
  void wait(const PlannedKernels::Ready& ready, const Candidate& kernel) {
    std::set<ir::ValueId> lacks;
    for (const ir::ValueId value : kernel.result.cuts) lacks.insert(before_reshapes(value));
    const auto is_here = [&](ir::ValueId v) {
      return std::find(ready.roots.begin(), ready.roots.end(), v) != ready.roots.end() || region_.made.count(v) != 0;
    };
    if (kernel.exprs->too_large || lacks.empty() || std::any_of(lacks.begin(), lacks.end(), is_here)) return;
    bool progress = false;
    for (const ir::ValueId v : lacks) progress = cut(v, kernel.result.reason) || progress;
    again_ = progress && !result_.kernels.empty();
    planned_.wait(ready.number, std::move(lacks));
  }

  // What may be too much for one kernel.
  template <typename F>
  static void attempt(const F& f) {
    try {
      f();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupportedOperator) throw;
    }
  }

  // Where kernels compute costly values too often, they are handed over; the group begins again. A kernel that makes
  // and reads such a value may still compute it at many places: then it is made apart.
  void cut_repeated() {
    for (const ir::ValueId v : repeats_.to_hand_over(region_.users)) {
      if (!cut(v, "it would be computed many times")) region_.apart.emplace(v, kNoBoundary);
      again_ = true;
    }
  }

  // Values that kernels before this one have to make.
  void cut_for(const Candidate& kernel) {
    const std::set<ir::ValueId>& cuts = kernel.result.cuts;
    const bool too_large = kernel.exprs->too_large;
    bool progress = false;
    for (ir::ValueId v : cuts) {
      progress = cut(too_large ? v : before_reshapes(v), kernel.result.reason) || progress;
      if (too_large || kernel.result.apart) region_.apart.emplace(v, kNoBoundary);
    }
    HEDDLE_CHECK(progress, "a cut repeats");
    // A kernel that is made already may be the one to hand the new value over, so the group begins again. A value
    // that is too large for its reader gets a kernel of its own: a new beginning for each takes quadratic time.
    again_ = !result_.kernels.empty() && !too_large;
  }

  bool cut(ir::ValueId v, const std::string& reason) {
    region_.pending.insert(v);
    if (!region_.cut.insert(v).second) return false;
    const ir::TensorType& type = graph().type(v);
    boundaries_.push_back({fmt::format("{} {}", ir::to_string(graph().producer(v).op), ir::to_string(type)),
                           region_.bytes_of(v), reason});
    return true;
  }

  // The value behind reshapes, which has the same bytes. A reader through another reshape then loads it as well.
  ir::ValueId before_reshapes(ir::ValueId v) const {
    const auto hands_over = [this](ir::ValueId u) {
      return !region_.is_input(u) && region_.cut.count(u) == 0 && region_.made.count(u) == 0;
    };
    while (hands_over(v) && graph().producer(v).op == ir::Op::kReshape && hands_over(graph().producer(v).inputs[0])) {
      v = graph().producer(v).inputs[0];
    }
    return v;
  }

  void split(const RegionBackend::Split& split) {
    splits_.push_back({fmt::format("{} parts of reduce {}", split.parts, ir::to_string(graph().type(split.value))),
                       static_cast<double>(split.parts) * region_.bytes_of(split.value), split.reason});
    renumber(split_reduction(region_.local, split.value, split.parts));
  }

  // Values have other numbers now: the cutting begins anew.
  void renumber(const ValueMap& now) {
    rewritten_ = true;
    region_.cut.clear();
    region_.apart.clear();
    boundaries_.clear();
    backend_.renumbered(now);
  }

  // A reduction that needs several kernels by itself may cost another root nothing, whose kernel makes it in any case:
  // statistics beside what is normalised by them. Then the two are one kernel.
  void join_whole(std::vector<ir::ValueId>& roots, Candidate& kernel) {
    constexpr double kFree = 1.02;  // its few results are stored, too
    const ir::ValueId first = roots[0];
    if (!region_.options.dominant_merging || region_.is_scan(first) || kernel.exprs->too_large) return;
    for (const ir::ValueId other : region_.pending) {
      const bool is_larger = region_.bytes_of(other) > region_.bytes_of(first);
      if (!is_larger || region_.is_scan(other) || !region_.sources.related(roots, other) ||
          region_.reads_forced(other, roots)) {
        continue;
      }
      attempt([&] {
        const Candidate alone = backend_.candidate({other});
        if (!is_whole(alone)) return;
        Candidate both = backend_.candidate({first, other});
        if (!is_whole(both) || both.result.seconds > kFree * alone.result.seconds) return;
        roots.push_back(other);
        kernel = std::move(both);
      });
      if (roots.size() > 1) return;
    }
  }

  // Other roots come along with the `roots` of a kernel unless they need something that is made only by it. What does
  // not join a kernel may join it once others have: a sum that would be split for itself, after what it normalises.
  void join_others(std::vector<ir::ValueId> roots, const std::optional<RowParts>& parts, Candidate& kernel) {
    if (!region_.options.dominant_merging || region_.is_scan(roots[0])) return;
    constexpr int kRounds = 2;
    for (int round = 0; round < kRounds; ++round) {
      bool refused = false, joined_later = false;
      for (const ir::ValueId other : region_.pending) {
        if (roots.size() >= backend_.most_roots()) return;
        if (std::find(roots.begin(), roots.end(), other) != roots.end() || region_.is_scan(other) ||
            !backend_.may_join(roots, other, kernel.result) || region_.reads_forced(other, roots)) {
          continue;
        }
        const bool joined = join(other, roots, parts, kernel);
        refused = refused || !joined;
        joined_later = joined_later || (joined && refused);
      }
      if (!joined_later) return;
    }
  }

  bool join(ir::ValueId other, std::vector<ir::ValueId>& roots, const std::optional<RowParts>& parts,
            Candidate& kernel) {
    std::vector<ir::ValueId> more = roots;
    more.push_back(other);
    bool joined = false;
    attempt([&] {
      Candidate wider = backend_.candidate(more, parts);
      if (wider.result.mapping == nullptr || (wider.result.split && !kernel.result.split)) return;
      if (!backend_.joins(kernel, wider, other)) return;
      roots = std::move(more);
      kernel = std::move(wider);
      joined = true;
    });
    return joined;
  }

  // A node with a kernel of its own: its operands are made first.
  void separate(const ir::Node& node) {
    std::optional<ScheduledKernel> kernel = standalone_kernel(
        graph(), node, region_.target, [this](ir::ValueId v) { return region_.is_input(v); },
        [this](ir::ValueId v, const std::string& reason) { cut(v, reason); },
        [this](ir::ValueId v) { return binding(v); });
    if (!kernel) {
      again_ = !result_.kernels.empty();
      return;
    }
    for (ir::ValueId v : node.outputs) has_made(v);
    result_.kernels.push_back(std::move(*kernel));
  }

  void emit(Candidate& from) {
    ScheduledKernel kernel;
    const std::string title = title_of(graph(), *from.exprs, [this](ir::ValueId v) { return region_.is_input(v); });
    kernel.label = "stitch " + title;
    kernel.config.reason = from.result.mapping->reason;
    kernel.stitch.bytes_moved = from.result.work.bytes;
    repeats_.add(*from.exprs);
    backend_.lower(from, title, kernel);
    for (const InputOperand& leaf : from.exprs->inputs) {
      kernel.desc.operands.push_back({Operand::Role::kInput, leaf.dtype, leaf.shape, {}});
      kernel.bindings.push_back(binding(leaf.value));
    }
    for (const Root& root : from.exprs->roots) {
      const ir::TensorType& type = graph().type(root.value);
      kernel.desc.operands.push_back(
          {Operand::Role::kOutput, type.dtype, backend_.context().memory_of(root.value).shape, {}});
      kernel.desc.operands.back().in_place = ir::is_in_place(graph().producer(root.value));
      kernel.bindings.push_back(binding(root.value));
    }
    result_.kernels.push_back(std::move(kernel));
    for (const Root& root : from.exprs->roots) has_made(root.value);
  }

  void has_made(ir::ValueId v) {
    region_.made.insert(v);
    region_.pending.erase(v);
  }

  Binding binding(ir::ValueId v) {
    const auto& outer = region_.local.outer;
    if (const auto at = outer.find(v); at != outer.end()) return {Binding::Kind::kValue, at->second, 0};
    const auto [at, is_new] = workspace_.try_emplace(v, static_cast<uint32_t>(result_.workspaces.size()));
    if (is_new) result_.workspaces.push_back({static_cast<int64_t>(region_.bytes_of(v))});
    return {Binding::Kind::kWorkspace, 0, at->second};
  }

  const ir::Graph& graph() const { return region_.local.graph; }

  Region& region_;
  RegionBackend& backend_;
  Repeats repeats_;
  ScheduledGroup result_;
  bool rewritten_ = false, again_ = false;
  std::vector<Boundary> boundaries_, splits_;
  std::map<ir::ValueId, uint32_t> workspace_;
  PlannedKernels planned_;
};

}  // namespace

ScheduledGroup schedule_region(Region& region, RegionBackend& backend) {
  return RegionScheduler(region, backend).run();
}

}  // namespace heddle::schedule
