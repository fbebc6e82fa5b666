#include "driver/plan/sequences.h"

#include <fmt/format.h>

#include <set>

#include "base/check.h"
#include "driver/model/kernel_report.h"
#include "driver/target/backend.h"
#include "schedule/backend.h"
#include "schedule/sequence/sequence.h"

namespace heddle::driver {
namespace {

// A run of consecutive steps whose kernels may be joined.
struct KernelRun {
  std::vector<size_t> steps;    // in the plan
  std::vector<size_t> kernels;  // among the pending ones
};

class SequenceJoiner {
 public:
  SequenceJoiner(const ir::Graph& graph, std::vector<PendingKernel>& kernels, BuildContext& context,
                 PlanBuffers& buffers, BuiltPlan& built)
      : graph_(graph), kernels_(kernels), context_(context), buffers_(buffers), built_(built), plan_(*built.plan) {}

  // Steps keep their numbers until all sequences are known: lifetimes of buffers are counted in them.
  void run() {
    for (const KernelRun& run : runs()) plan_run(run);
    for (const Joined& joined : joined_) replace(joined);
    remove_steps();
  }

 private:
  struct Joined {
    std::vector<size_t> steps, kernels;
    schedule::ScheduledKernel kernel;
    std::vector<uint32_t> operands;
  };

  runtime::CudaStep& cuda_step(size_t step) const { return std::get<runtime::CudaStep>(plan_.steps[step].action); }

  std::vector<KernelRun> runs() const {
    std::vector<KernelRun> found(1);
    size_t kernel = 0;
    for (size_t step = 0; step < plan_.steps.size(); ++step) {
      const bool has_kernel = built_.step_report[step].second >= 0;
      if (has_kernel && std::holds_alternative<runtime::CudaStep>(plan_.steps[step].action)) {
        found.back().steps.push_back(step), found.back().kernels.push_back(kernel);
      } else if (!found.back().steps.empty()) {
        found.emplace_back();
      }
      kernel += has_kernel ? 1 : 0;
    }
    HEDDLE_CHECK(kernel == kernels_.size(), "{} kernels in steps, {} are pending", kernel, kernels_.size());
    return found;
  }

  // The buffers of a kernel that a sequence accesses: its operands, then its workspace.
  std::vector<uint32_t> buffers_of(size_t step, size_t kernel) const {
    const std::vector<uint32_t>& operands = cuda_step(step).operands;
    const size_t own = kernels_[kernel].scheduled.desc.operands.size();
    std::vector<uint32_t> found(operands.begin(), operands.begin() + static_cast<int64_t>(own));
    if (has_workspace(kernel)) found.push_back(operands.at(own));
    return found;
  }
  bool has_workspace(size_t kernel) const { return kernels_[kernel].source.workspace_bytes > 0; }

  void plan_run(const KernelRun& run) {
    std::vector<schedule::PlannedKernel> planned;
    for (size_t i = 0; i < run.steps.size(); ++i) {
      schedule::PlannedKernel& kernel = planned.emplace_back(&kernels_[run.kernels[i]].scheduled,
                                                             std::vector<int64_t>(), has_workspace(run.kernels[i]));
      for (const uint32_t buffer : buffers_of(run.steps[i], run.kernels[i])) {
        kernel.memory.push_back(buffers_.memory_of(buffer));
      }
    }
    schedule::SequencePlan plan = schedule::backend_of(context_.target).plan_sequences(planned, context_.target);
    for (size_t i = 1; i < plan.notes.size(); ++i) {
      if (plan.notes[i].empty()) continue;
      context_.report.decisions.push_back(
          {false, "sequence", fmt::format("{} after {}", planned[i].kernel->label, planned[i - 1].kernel->label),
           plan.notes[i]});
    }
    for (schedule::SequencePlan::Joined& found : plan.joined) {
      Joined joined;
      for (size_t i = found.first; i < found.first + found.count; ++i) {
        joined.steps.push_back(run.steps[i]), joined.kernels.push_back(run.kernels[i]);
        const std::vector<uint32_t> buffers = buffers_of(run.steps[i], run.kernels[i]);
        joined.operands.insert(joined.operands.end(), buffers.begin(), buffers.end());
      }
      context_.report.decisions.push_back({true, "sequence", found.kernel.label, found.kernel.stitch.mapping});
      joined.kernel = std::move(found.kernel);
      joined_.push_back(std::move(joined));
    }
  }

  // Puts the sequence into the place of its last step.
  void replace(const Joined& joined) {
    const size_t first = joined.steps.front(), last = joined.steps.back();
    codegen::KernelSource source =
        codegen::emit(schedule::plan_kernel(joined.kernel, context_.target), context_.target);
    std::vector<uint32_t> operands = joined.operands;
    // Phases may overlap in time, so that no memory is used again within the sequence.
    for (const uint32_t buffer : operands) {
      buffers_.keep_alive(buffer, static_cast<int64_t>(first), static_cast<int64_t>(last));
    }
    operands.push_back(buffers_.add_workspace(source.workspace_bytes));
    KernelReport report = report_of(graph_, joined.kernel, source);
    report.floor_seconds = 0;
    runtime::Step& step = plan_.steps[last];
    std::string origins;
    for (const size_t member : joined.steps) {
      report.floor_seconds += plan_.steps[member].floor_seconds;
      origins += (origins.empty() ? "" : ", ") + plan_.steps[member].origin;
    }
    step.action = backend_of(context_.target).step(source, std::move(operands));
    step.label = joined.kernel.label, step.origin = std::move(origins), step.floor_seconds = report.floor_seconds;
    for (const size_t kernel : joined.kernels) in_sequence_.insert(kernel);
    removed_.insert(joined.steps.begin(), joined.steps.end() - 1);
    reports_[last] = std::move(report);
    context_.kernels.add(std::move(source));
  }

  // Removes the steps of phases, with their reports. The reports of groups list the other kernels in the same order.
  void remove_steps() {
    size_t kernel = 0, kept = 0;
    std::vector<std::vector<KernelReport>> of_group(context_.report.groups.size());
    for (size_t step = 0; step < plan_.steps.size(); ++step) {
      const auto [group, number] = built_.step_report[step];
      GroupReport& report = context_.report.groups[group];
      if (number >= 0) {
        const bool is_phase = in_sequence_.contains(kernel);
        if (!is_phase) context_.kernels.add(std::move(kernels_[kernel].source));
        KernelReport& own = report.kernels[static_cast<size_t>(number)];
        const auto sequence = reports_.find(step);
        if (is_phase)
          report.notes.push_back(fmt::format("{} is a phase of a sequence: {}", own.symbol, reason_of(own)));
        if (sequence != reports_.end()) {
          of_group[group].push_back(std::move(sequence->second));
        } else if (!is_phase) {
          of_group[group].push_back(std::move(own));
        }
        ++kernel;
      }
      if (is_removed(step)) continue;
      note_groups(step, kept);
      built_.step_report[kept] = {group, number < 0 ? -1 : static_cast<int64_t>(of_group[group].size()) - 1};
      built_.step_group[kept] = built_.step_group[step];
      if (kept != step) plan_.steps[kept] = std::move(plan_.steps[step]);
      ++kept;
    }
    plan_.steps.resize(kept);
    built_.step_report.resize(kept), built_.step_group.resize(kept);
    for (size_t group = 0; group < of_group.size(); ++group) {
      context_.report.groups[group].kernels = std::move(of_group[group]);
    }
  }

  bool is_removed(size_t step) const { return removed_.contains(step); }

  // Notes which groups end with a sequence, which moves from `step` to `kept`.
  void note_groups(size_t step, size_t kept) {
    if (!reports_.contains(step)) return;
    std::vector<int64_t>& groups = built_.joined_groups[kept];
    size_t first = step;
    while (first > 0 && is_removed(first - 1)) --first;
    for (size_t member = first; member <= step; ++member) {
      const int64_t group = built_.step_group[member];
      if (groups.empty() || groups.back() != group) groups.push_back(group);
    }
  }

  static std::string reason_of(const KernelReport& kernel) {
    return kernel.reason.empty() ? kernel.stitch.mapping : kernel.reason;
  }

  const ir::Graph& graph_;
  std::vector<PendingKernel>& kernels_;
  BuildContext& context_;
  PlanBuffers& buffers_;
  BuiltPlan& built_;
  runtime::Plan& plan_;
  std::vector<Joined> joined_;
  std::set<size_t> in_sequence_, removed_;  // kernels; steps
  std::map<size_t, KernelReport> reports_;  // of sequences, by step
};

}  // namespace

void finish_kernels(const ir::Graph& graph, std::vector<PendingKernel> kernels, int depth, BuildContext& context,
                    PlanBuffers& buffers, BuiltPlan& built) {
  const bool joins = depth == 0 && context.fusion == passes::FusionPolicy::kStitch && context.rules.sequences;
  if (joins) return SequenceJoiner(graph, kernels, context, buffers, built).run();
  for (PendingKernel& kernel : kernels) context.kernels.add(std::move(kernel.source));
}

}  // namespace heddle::driver
