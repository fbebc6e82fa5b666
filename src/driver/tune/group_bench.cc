#include "driver/tune/group_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "codegen/codegen.h"
#include "driver/model/kernel_report.h"
#include "driver/model/kernel_times.h"
#include "driver/plan/plan_builder.h"
#include "driver/target/backend.h"
#include "heddle/error.h"
#include "ir/analysis/placement.h"
#include "ir/reference/array.h"
#include "ir/text/text.h"
#include "passes/pass.h"
#include "schedule/config/config_source.h"
#include "schedule/kernel_plan.h"

namespace heddle::driver {
namespace {

constexpr int64_t kFlushBytes = int64_t{64} << 20;  // what leaves nothing in a CPU's caches

// Remembers the candidates, and answers with one of them where it is given.
class Chosen : public schedule::ConfigSource {
 public:
  explicit Chosen(const schedule::Config* fixed = nullptr) : fixed_(fixed) {}
  std::optional<schedule::Config> choose(const schedule::Problem&,
                                         const schedule::ConfigSource::Candidates& all) override {
    if (fixed_ != nullptr) return *fixed_;
    list = all();
    return std::nullopt;
  }
  std::vector<schedule::Config> list;

 private:
  const schedule::Config* fixed_;
};

double predicted_us(const schedule::ScheduledKernel& kernel) {
  return kernel.stitch.predicted_seconds > 0 ? kernel.stitch.predicted_seconds * 1e6 : kernel.config.predicted_us;
}

// The kernels of `part` behind those of `whole`.
void append(schedule::ScheduledGroup& whole, schedule::ScheduledGroup part) {
  const auto first = static_cast<uint32_t>(whole.workspaces.size());
  whole.workspaces.insert(whole.workspaces.end(), part.workspaces.begin(), part.workspaces.end());
  for (schedule::ScheduledKernel& kernel : part.kernels) {
    for (schedule::Binding& binding : kernel.bindings) {
      if (binding.kind == schedule::Binding::Kind::kWorkspace) binding.workspace += first;
    }
    whole.kernels.push_back(std::move(kernel));
  }
}

// What the groups of a problem can be configured as.
struct Choices {
  std::vector<std::vector<schedule::Config>> of_group;  // empty where there is no choice
  size_t leading = 0;                                   // the most expensive group, of those with a choice if any has
};

Choices choices_of(const GroupProblem& problem, const Target& target) {
  Choices choices;
  double most = -1;
  bool any = false;
  for (const ir::Group& group : problem.groups) {
    Chosen asked;
    const schedule::ScheduledGroup scheduled = schedule::schedule(problem.graph, group, target, &asked);
    double floor = 0;
    for (const schedule::ScheduledKernel& kernel : scheduled.kernels) floor += kernel.floor_seconds;
    const bool has_choice = !asked.list.empty();
    if ((has_choice && !any) || (has_choice == any && floor > most)) {
      choices.leading = choices.of_group.size(), most = floor, any = has_choice;
    }
    choices.of_group.push_back(std::move(asked.list));
  }
  // A group without a choice has one candidate: its most expensive kernel is what it is called.
  std::vector<schedule::Config>& leading = choices.of_group[choices.leading];
  if (leading.empty()) {
    const schedule::ScheduledGroup only = schedule::schedule(problem.graph, problem.groups[choices.leading], target);
    const auto kernel = std::max_element(only.kernels.begin(), only.kernels.end(), [](const auto& a, const auto& b) {
      return a.floor_seconds < b.floor_seconds;
    });
    leading.push_back(kernel->config);
  }
  return choices;
}

GroupCandidate candidate_of(const GroupProblem& problem, const Choices& choices, const schedule::Config& config,
                            const Target& target) {
  GroupCandidate candidate{config, {}, config.predicted_us};
  const std::string name = schedule::name_of(config);
  for (size_t i = 0; i < problem.groups.size(); ++i) {
    const std::vector<schedule::Config>& list = choices.of_group[i];
    const auto same =
        std::find_if(list.begin(), list.end(), [&](const auto& other) { return schedule::name_of(other) == name; });
    Chosen fixed(i == choices.leading ? &config : same == list.end() ? nullptr : &*same);
    schedule::ScheduledGroup part = schedule::schedule(problem.graph, problem.groups[i], target, &fixed);
    for (schedule::ScheduledKernel& kernel : part.kernels) {
      for (schedule::Binding& binding : kernel.bindings) binding.value = problem.memory_of(binding.value);
      if (i != choices.leading) candidate.predicted_us += predicted_us(kernel);
    }
    append(candidate.kernels, std::move(part));
  }
  return candidate;
}

// Whether each node is memory-bound or a contraction that the target has kernels for.
void require_kernels(const ir::Graph& graph, const ir::Group& group) {
  if (group.kind != ir::GroupKind::kReference) return;
  fail(ErrorCode::kUnsupportedOperator, std::string(to_string(graph.node(group.nodes.front()).op)),
       "the target has no kernel for it");
}

// Of kernels for a target, by prediction.
KernelTimes times_for(const Target& target) {
  CompileReport report;
  report.target = target.fingerprint();
  report.threads = target.cpu.threads;
  report.sms = target.gpu().sms;
  return KernelTimes(report);
}

std::vector<codegen::KernelSource> sources_of(const GroupCandidate& candidate, const Target& target) {
  std::vector<codegen::KernelSource> sources;
  for (const schedule::ScheduledKernel& kernel : candidate.kernels.kernels) {
    sources.push_back(codegen::emit(schedule::plan_kernel(kernel, target), target));
  }
  return sources;
}

}  // namespace

ir::ValueId GroupProblem::memory_of(ir::ValueId value) const {
  for (auto found = views.find(value); found != views.end(); found = views.find(value)) value = found->second;
  return value;
}

GroupProblem group_problem(ir::Graph graph, ir::GroupKind kind) {
  GroupProblem whole{std::move(graph), {}, {}, 0, {}};
  ir::Group group{kind, {}, 0, {}, {}};
  for (ir::NodeId id = 0; id < whole.graph.nodes().size(); ++id) {
    const ir::Node& node = whole.graph.node(id);
    if (node.op == ir::Op::kParameter || node.op == ir::Op::kConstant) continue;
    group.nodes.push_back(id);
    if (node.op == ir::Op::kDot || node.op == ir::Op::kConv) group.anchor = id;
    for (const ir::ValueId input : node.inputs) {
      const ir::Op op = whole.graph.producer(input).op;
      if (op == ir::Op::kParameter || op == ir::Op::kConstant) group.inputs.push_back(input);
    }
  }
  group.outputs.push_back(whole.graph.outputs()[0].value);
  whole.groups.push_back(std::move(group));
  return whole;
}

GroupProblem compiled_problem(const std::string& text, const Target& target) {
  Settings settings;
  settings.target = target;
  GroupProblem whole{passes::run_pipeline(ir::parse(text), pass_context(settings)), {}, {}, 0, {}};
  for (ir::Group& group : group_nodes(whole.graph, target, settings.fusion).groups) {
    if (!ir::is_view(whole.graph, group)) {
      require_kernels(whole.graph, group);
      whole.groups.push_back(std::move(group));
      continue;
    }
    for (const ir::NodeId id : group.nodes) {
      const ir::Node& node = whole.graph.node(id);
      if (node.op == ir::Op::kReshape) whole.views[node.outputs[0]] = node.inputs[0];
    }
  }
  return whole;
}

std::vector<double> operand_values(const ir::Graph& graph, ir::ValueId value, const tune::GroupTrial& trial) {
  const Tensor* constant = graph.constant_of(value);
  return constant == nullptr ? trial.values(value) : ir::to_array(*constant).f();
}

std::vector<int64_t> sampled(int64_t count, int64_t most) {
  std::vector<int64_t> result;
  if (count <= most) {
    for (int64_t i = 0; i < count; ++i) result.push_back(i);
    return result;
  }
  // Multiples of the golden section are evenly spread, and no factor of the count keeps them from any phase of a
  // stride.
  auto step = static_cast<int64_t>(static_cast<double>(count) * 0.6180339887);
  while (std::gcd(step, count) != 1) ++step;
  result.push_back(0);
  for (int64_t at = count - 1; static_cast<int64_t>(result.size()) < most; at = (at + step) % count) {
    if (at != 0) result.push_back(at);
  }
  return result;
}

double larger_error(double error, double got, double want, double bound) {
  const double apart = std::fabs(got - want);
  return apart <= error * bound ? error : std::isnan(apart) ? 1e30 : apart / bound;
}

std::vector<GroupCandidate> group_candidates(const GroupProblem& problem, const Target& target, int most,
                                             const std::string& only) {
  const Choices choices = choices_of(problem, target);
  std::vector<GroupCandidate> found;
  for (const schedule::Config& config : choices.of_group[choices.leading]) {
    if (most > 0 && found.size() == static_cast<size_t>(most)) break;
    if (config.reason.find(only) == std::string::npos) continue;
    found.push_back(candidate_of(problem, choices, config, target));
  }
  if (found.empty()) {
    fail(ErrorCode::kInvalidArgument, "candidates", fmt::format("none has \"{}\" in its reason", only),
         "The column `why` shows the reasons");
  }
  return found;
}

std::string group_unit(const GroupCandidate& candidate, const Target& target) {
  const std::vector<codegen::KernelSource> sources = sources_of(candidate, target);
  std::vector<const codegen::KernelSource*> list;
  for (const codegen::KernelSource& source : sources) list.push_back(&source);
  return codegen::translation_unit(list);
}

std::vector<std::string> far_kernels(const GroupProblem& problem, const GroupCandidate& candidate,
                                     const Target& target) {
  const KernelTimes times = times_for(target);
  const std::vector<codegen::KernelSource> sources = sources_of(candidate, target);
  std::vector<std::string> lines;
  for (size_t i = 0; i < sources.size(); ++i) {
    const schedule::ScheduledKernel& kernel = candidate.kernels.kernels[i];
    const std::optional<Excess> excess = times.excess(report_of(problem.graph, kernel, sources[i]));
    if (excess)
      lines.push_back(fmt::format("{}: {:.1f} times its floor: {}", kernel.label, excess->times, excess->why));
  }
  return lines;
}

GroupBenchResult bench_group(const GroupProblem& problem, std::vector<GroupCandidate> candidates, const Target& target,
                             const GroupBenchOptions& options) {
  std::vector<schedule::ScheduledGroup> groups;
  std::vector<KernelReport> wholes(candidates.size());  // all kernels of a candidate as one
  for (size_t i = 0; i < candidates.size(); ++i) {
    GroupCandidate& candidate = candidates[i];
    for (const auto& kernel : candidate.kernels.kernels) wholes[i].floor_seconds += kernel.floor_seconds;
    groups.push_back(std::move(candidate.kernels));
  }
  const std::unique_ptr<tune::GroupTrial> trial =
      backend_of(target).trial(std::move(groups), target, options.device, values_of(problem.graph), kFlushBytes);
  tune::TunerOptions tuner;
  tuner.budget_seconds = 60;
  tuner.rounds = options.repeats + 1;  // the first does not count
  tuner.margin = 0.005;                // the best is asked for, not a reason to leave the first
  const tune::TunerResult tuned = tune::choose_best(*trial, tuner);
  GroupBenchResult result;
  result.device = target.identity().name;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const tune::CandidateTimes& times = tuned.times[i];
    result.timings.push_back({candidates[i].config, candidates[i].predicted_us, times.median * 1e6,
                              static_cast<int>(times.seconds.size()), times.failure});
  }
  if (!tuned.ok) return result;
  result.best = static_cast<int>(tuned.winner);
  result.floor_us = times_for(target).floor(wholes[tuned.winner]) * 1e6;
  if (options.verify) {
    trial->check(tuned.winner);
    result.error = problem.error(problem, *trial);
  }
  return result;
}

}  // namespace heddle::driver
