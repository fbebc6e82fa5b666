#include "schedule/sequence/sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/divide.h"
#include "schedule/sequence/cost.h"
#include "schedule/sequence/phase.h"
#include "target/cuda_occupancy.h"

namespace heddle::schedule {
namespace {

using Ahead = SequenceDesc::Ahead;
using Phase = SequenceDesc::Phase;

constexpr size_t kMostPhases = 32;
constexpr size_t kMostArgumentBytes = 4096;

// The bytes that a launch may request at its start.
double most_ahead(const GpuTarget& target) {
  return static_cast<double>(target.l2_bytes) / 3;
}

// A kernel of the plan as phases.
struct Kernel {
  std::optional<ScheduledKernel> phase;  // the form in which it is a phase, if that is another one
  std::vector<PhaseDraft> phases;
  double us = 0;  // predicted on its own, without the boundary before it
};

// A run of kernels as a sequence, or the reason why it is none.
struct Draft {
  std::vector<OrderedPhase> phases;
  int threads = 0, resident = 0;
  uint32_t shared_bytes = 0;
  SequenceTimes times;
  std::string obstacle;
};

bool meet(const PhaseFacts& a, const PhaseFacts& b) {
  const auto common = [](const std::vector<int64_t>& x, const std::vector<int64_t>& y) {
    return std::any_of(x.begin(), x.end(), [&](int64_t m) { return std::find(y.begin(), y.end(), m) != y.end(); });
  };
  return common(a.writes, b.writes) || common(a.writes, b.reads) || common(a.reads, b.writes);
}

// Sets the phases for which each phase waits.
void order(std::vector<OrderedPhase>& phases) {
  static_assert(kMostPhases <= 64);
  std::vector<uint64_t> before(phases.size());  // by phase: all phases that end before it begins
  for (size_t p = 0; p < phases.size(); ++p) {
    for (size_t q = p; q-- > 0;) {
      if ((before[p] >> q & 1) != 0 || !meet(phases[p].draft->facts, phases[q].draft->facts)) continue;
      phases[p].after.push_back(q);
      before[p] |= before[q] | uint64_t{1} << q;
    }
  }
}

// Decides when phases request data, for a launch of `blocks` blocks. What the launch requests at its start must leave
// room in the L2 for other data.
void look_ahead(std::vector<OrderedPhase>& phases, int64_t blocks, const GpuTarget& target) {
  double room_us = most_ahead(target) / (target.model.chip.read_tbps * 1e6);
  for (size_t p = 0; p < phases.size(); ++p) {
    const PhaseFacts& facts = phases[p].draft->facts;
    const auto is_written = [&](int64_t memory) {
      return std::any_of(phases.begin(), phases.begin() + static_cast<int64_t>(p), [&](const OrderedPhase& phase) {
        const std::vector<int64_t>& writes = phase.draft->facts.writes;
        return std::find(writes.begin(), writes.end(), memory) != writes.end();
      });
    };
    const std::vector<int64_t>& decides = facts.decide_ahead;
    if (facts.ahead_us <= 0 || std::any_of(decides.begin(), decides.end(), is_written)) continue;
    const bool at_start = std::all_of(decides.begin(), decides.end(), [](int64_t m) { return m == kConstantMemory; }) &&
                          facts.tasks <= blocks && facts.ahead_us <= room_us;
    phases[p].ahead = at_start ? Ahead::kAtStart : Ahead::kWithTask;
    if (at_start) room_us -= facts.ahead_us;
  }
}

// Blocks have the threads of the phases that synchronise whole blocks. The other phases leave threads idle.
std::string set_threads(Draft& draft) {
  int fixed = 0, most = 0;
  for (const OrderedPhase& phase : draft.phases) {
    const PhaseFacts& facts = phase.draft->facts;
    most = std::max(most, facts.threads);
    if (!facts.needs_all_threads) continue;
    if (fixed != 0 && fixed != facts.threads)
      return fmt::format("blocks of {} and of {} threads", fixed, facts.threads);
    fixed = facts.threads;
  }
  if (fixed != 0 && most > fixed) return fmt::format("blocks of {} and of {} threads", fixed, most);
  draft.threads = most;
  return {};
}

// Sets everything of a draft that has its phases, except the times.
void complete(Draft& draft, const GpuTarget& target) {
  if (draft.phases.size() > kMostPhases) draft.obstacle = fmt::format("{} phases", draft.phases.size());
  size_t bytes = sizeof(uint64_t);
  uint32_t shared = 0;
  for (const OrderedPhase& phase : draft.phases) {
    bytes += phase.draft->facts.argument_bytes;
    shared = std::max(shared, phase.draft->facts.shared_bytes);
  }
  if (bytes > kMostArgumentBytes) draft.obstacle = fmt::format("{} bytes of arguments", bytes);
  if (draft.obstacle.empty()) draft.obstacle = set_threads(draft);
  if (!draft.obstacle.empty()) return;
  draft.shared_bytes = static_cast<uint32_t>(round_up(int64_t{shared}, int64_t{kQueueSharedBytes})) + kQueueSharedBytes;
  draft.resident =
      resident_blocks(target, static_cast<uint32_t>(draft.threads), draft.shared_bytes, kSequenceRegisters);
  if (draft.resident == 0) draft.obstacle = fmt::format("{} bytes of shared memory", draft.shared_bytes);
  order(draft.phases);
  look_ahead(draft.phases, int64_t{target.sms} * draft.resident, target);
}

// Cuts a run of kernels, each of which can be a phase, such that the predicted time is least.
class SequenceCutter {
 public:
  SequenceCutter(const std::vector<PlannedKernel>& planned, size_t first, size_t end, const GpuTarget& target)
      : planned_(planned), first_(first), target_(target) {
    for (size_t i = first; i < end; ++i) {
      Kernel& kernel = kernels_.emplace_back();
      kernel.phase = other_form(*planned[i].kernel, target);
      PlannedKernel as_phase = planned[i];
      if (kernel.phase) as_phase.kernel = &*kernel.phase;
      kernel.phases = phases_of(as_phase, target);
      kernel.us = us_alone(*planned[i].kernel, target);
    }
  }

  void run(SequencePlan& plan) const {
    const size_t all = kernels_.size();
    std::vector<double> saved(all + 1);   // by the first kernels, in us
    std::vector<size_t> length(all + 1);  // of the sequence that ends with the last of them; 1: none
    std::vector<std::string> why(all + 1);
    for (size_t end = 1; end <= all; ++end) {
      saved[end] = saved[end - 1], length[end] = 1;
      for (size_t count = 2; count <= end; ++count) {
        const Draft draft = draft_of(end - count, count);
        if (why[end].empty()) why[end] = reason_of(draft, count);
        if (!draft.obstacle.empty()) break;  // longer ones have it, too
        if (!pays(draft.times, target_)) continue;
        const double with = saved[end - count] + draft.times.apart - draft.times.together;
        if (with > saved[end]) saved[end] = with, length[end] = count;
      }
    }
    for (size_t end = all; end > 0; end -= length[end]) {
      const size_t count = length[end], first = end - count;
      if (count > 1) {
        plan.joined.push_back(joined(first, count));
      } else {
        plan.notes[first_ + first] = why[end];
      }
    }
  }

 private:
  static std::string reason_of(const Draft& draft, size_t count) {
    return !draft.obstacle.empty() ? fmt::format("{} kernels in sequence have {}", count, draft.obstacle)
                                   : fmt::format("{:.3g} us apart, {:.3g} us in sequence with the kernel before it",
                                                 draft.times.apart, draft.times.together);
  }

  Draft draft_of(size_t first, size_t count) const {
    Draft draft;
    double apart = static_cast<double>(count - 1) * target_.model.chip.graph_boundary_us;
    for (size_t i = first; i < first + count; ++i) {
      for (const PhaseDraft& phase : kernels_[i].phases) draft.phases.push_back({&phase, {}});
      apart += kernels_[i].us;
    }
    complete(draft, target_);
    if (!draft.obstacle.empty()) return draft;
    draft.times = {apart, us_together(draft.phases, draft.resident, target_)};
    return draft;
  }

  SequencePlan::Joined joined(size_t first, size_t count) const {
    const Draft draft = draft_of(first, count);
    SequencePlan::Joined joined{first_ + first, count, {}};
    ScheduledKernel& result = joined.kernel;
    auto sequence = std::make_shared<SequenceDesc>();
    sequence->threads = draft.threads, sequence->resident = draft.resident, sequence->shared_bytes = draft.shared_bytes;
    for (size_t i = first; i < first + count; ++i) add_kernel(*sequence, result, i);
    int64_t counters = sequence->queue_bytes();
    for (size_t p = 0; p < draft.phases.size(); ++p) {
      Phase& phase = sequence->phases[p];
      phase.counters = counters;
      counters += draft.phases[p].draft->facts.counter_bytes;
      phase.after = draft.phases[p].after, phase.ahead = draft.phases[p].ahead;
      result.config.tasks += draft.phases[p].draft->facts.tasks;
      result.stitch.barriers += phase.after.empty() ? 0 : 1;
    }
    result.stitch.on_chip_bytes = draft.shared_bytes;
    result.stitch.predicted_seconds = (draft.times.together + target_.model.chip.graph_boundary_us) * 1e-6;
    result.stitch.mapping =
        fmt::format("{} phases, {} tasks for blocks of {} threads, {:.3g} us apart, {:.3g} us together",
                    draft.phases.size(), result.config.tasks, draft.threads, draft.times.apart, draft.times.together);
    const std::string& last = planned_[first_ + first + count - 1].kernel->label;
    result.label = fmt::format("{} kernels in sequence: {} to {}", count, planned_[first_ + first].kernel->label, last);
    result.config.reason = result.stitch.mapping;
    result.desc.body = std::shared_ptr<const SequenceDesc>(std::move(sequence));
    return joined;
  }

  // Appends the phases, the operands and the bindings of a kernel.
  void add_kernel(SequenceDesc& sequence, ScheduledKernel& result, size_t i) const {
    const PlannedKernel& planned = planned_[first_ + i];
    const ScheduledKernel& kernel = *planned.kernel;
    for (const PhaseDraft& draft : kernels_[i].phases) {
      Phase& phase = sequence.phases.emplace_back(draft.desc);
      phase.first += result.desc.operands.size();
      if (phase.workspace) *phase.workspace += result.desc.operands.size();
    }
    result.desc.operands.insert(result.desc.operands.end(), kernel.desc.operands.begin(), kernel.desc.operands.end());
    result.bindings.insert(result.bindings.end(), kernel.bindings.begin(), kernel.bindings.end());
    if (planned.has_workspace) {
      Operand& workspace = result.desc.operands.emplace_back();
      workspace.role = Operand::Role::kOutput, workspace.dtype = DType::kU8;
      result.bindings.push_back({Binding::Kind::kWorkspace});
    }
    result.floor_seconds += kernel.floor_seconds;
    result.stitch.bytes_moved += kernel.stitch.bytes_moved;
  }

  const std::vector<PlannedKernel>& planned_;
  const size_t first_;
  const GpuTarget& target_;
  std::vector<Kernel> kernels_;
};

}  // namespace

int64_t SequenceDesc::queue_bytes() const {
  return round_up(static_cast<int64_t>((phases.size() + 2) * sizeof(uint32_t)), int64_t{128});
}

KernelLaunches plan_launches(const SequenceDesc& sequence, const GpuTarget& target, size_t operands) {
  int64_t tasks = 0, counters = sequence.queue_bytes();
  for (const Phase& phase : sequence.phases) {
    const KernelPlan plan = plan_phase(phase, target);
    tasks += plan.launches.front().grid[0];
    counters = std::max(counters, phase.counters + plan.counter_bytes);
  }
  CudaLaunch launch;
  launch.grid[0] = static_cast<uint32_t>(std::min<int64_t>(tasks, int64_t{target.sms} * sequence.resident));
  launch.block = static_cast<uint32_t>(sequence.threads);
  launch.shared_bytes = sequence.shared_bytes;
  launch.arguments.emplace_back(sizeof(uint64_t), uint8_t{0});
  launch.pointers = {{0, 0, static_cast<int>(operands) + 1}};  // counters lie behind the workspace
  KernelLaunches plan{{std::move(launch)}};
  plan.counter_bytes = counters;
  return plan;
}

SequencePlan plan_sequences(const std::vector<PlannedKernel>& kernels, const GpuTarget& target) {
  const bool is_measured = target.model.chip.grid_wait_us > 0;
  std::vector<std::string> obstacles;
  for (const PlannedKernel& planned : kernels) {
    obstacles.push_back(is_measured ? phase_obstacle(*planned.kernel, target)
                                    : "no gain from sequences was measured on this device");
  }
  SequencePlan plan;
  plan.notes.resize(kernels.size());
  for (size_t first = 0; first < kernels.size();) {
    size_t end = first;
    while (end < kernels.size() && obstacles[end].empty()) ++end;
    if (end > first) SequenceCutter(kernels, first, end, target).run(plan);
    if (end > first && end < kernels.size()) plan.notes[end] = obstacles[end];
    first = end + 1;
  }
  std::sort(plan.joined.begin(), plan.joined.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return plan;
}

}  // namespace heddle::schedule
