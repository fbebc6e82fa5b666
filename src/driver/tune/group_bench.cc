#include "driver/tune/group_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codegen/codegen.h"
#include "heddle/error.h"
#include "ir/reference/array.h"
#include "ir/text/text.h"
#include "schedule/config/config_source.h"
#include "schedule/kernel_plan.h"

namespace heddle::driver {
namespace {

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

schedule::ScheduledGroup scheduled(const GroupProblem& problem, const schedule::Config& config, const Target& target) {
  Chosen fixed(&config);
  return schedule::schedule(problem.graph, problem.group, target, &fixed);
}

}  // namespace

GroupProblem group_problem(const std::string& text, ir::GroupKind kind) {
  GroupProblem whole{ir::parse(text), {kind, {}, 0, {}, {}}, 0, {}};
  for (ir::NodeId id = 0; id < whole.graph.nodes().size(); ++id) {
    const ir::Node& node = whole.graph.node(id);
    if (node.op == ir::Op::kParameter || node.op == ir::Op::kConstant) continue;
    whole.group.nodes.push_back(id);
    if (node.op == ir::Op::kDot || node.op == ir::Op::kConv) whole.group.anchor = id;
    for (const ir::ValueId input : node.inputs) {
      const ir::Op op = whole.graph.producer(input).op;
      if (op == ir::Op::kParameter || op == ir::Op::kConstant) whole.group.inputs.push_back(input);
    }
  }
  whole.group.outputs.push_back(whole.graph.outputs()[0].value);
  return whole;
}

std::vector<double> operand_values(const ir::Graph& graph, ir::ValueId value, const CudaTrial& trial) {
  const Tensor* constant = graph.constant_of(value);
  return constant == nullptr ? trial.values(value) : ir::to_array(*constant).f();
}

std::vector<int64_t> sampled(int64_t count, int64_t most) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < std::min(count, most); ++i)
    result.push_back(count <= most ? i : (count - 1) * i / (most - 1));
  return result;
}

double larger_error(double error, double got, double want, double bound) {
  const double apart = std::fabs(got - want);
  return apart <= error * bound ? error : std::isnan(apart) ? 1e30 : apart / bound;
}

std::vector<schedule::Config> group_configs(const GroupProblem& problem, const Target& target, int most,
                                            const std::string& only) {
  Chosen candidates;
  schedule::schedule(problem.graph, problem.group, target, &candidates);
  std::vector<schedule::Config> found;
  for (schedule::Config& config : candidates.list) {
    const bool enough = most > 0 && found.size() == static_cast<size_t>(most);
    const bool wanted = config.reason.find(only) != std::string::npos;
    if (wanted && !enough) found.push_back(std::move(config));
  }
  if (found.empty()) {
    fail(ErrorCode::kInvalidArgument, "candidates", fmt::format("none has \"{}\" in its reason", only),
         "The column `why` shows the reasons");
  }
  return found;
}

std::string group_unit(const GroupProblem& problem, const schedule::Config& config, const Target& target) {
  const schedule::ScheduledGroup group = scheduled(problem, config, target);
  std::vector<codegen::KernelSource> sources;
  for (const auto& kernel : group.kernels) {
    sources.push_back(codegen::emit(schedule::plan_kernel(kernel, target), target));
  }
  std::vector<const codegen::KernelSource*> list;
  for (const codegen::KernelSource& source : sources) list.push_back(&source);
  return codegen::translation_unit(list);
}

GroupBenchResult bench_group(const GroupProblem& problem, const GroupBenchOptions& options) {
  const auto context = runtime::CudaContext::of_device(options.device);
  const Target target = Target::of(context->device().target);
  const std::vector<schedule::Config> configs = group_configs(problem, target, options.most, options.only);
  std::vector<schedule::ScheduledGroup> groups;
  for (const schedule::Config& config : configs) groups.push_back(scheduled(problem, config, target));
  CudaTrial trial(
      std::move(groups), target, [&](uint32_t v) { return problem.graph.constant_of(v); }, options.device);
  tune::TunerOptions tuner;
  tuner.budget_seconds = 60;
  tuner.rounds = options.repeats + 1;  // the first does not count
  tuner.margin = 0.005;                // the best is asked for, not a reason to leave the first
  const tune::TunerResult tuned = tune::choose_fastest(trial, tuner);
  GroupBenchResult result;
  result.device = context->device().name;
  for (size_t i = 0; i < configs.size(); ++i) {
    const tune::CandidateTimes& times = tuned.times[i];
    result.timings.push_back({configs[i], times.median * 1e6, static_cast<int>(times.seconds.size()), times.failure});
  }
  if (!tuned.ok) return result;
  result.best = static_cast<int>(tuned.winner);
  if (options.verify) {
    trial.check(tuned.winner);
    result.error = problem.error(problem.graph, trial);
  }
  return result;
}

}  // namespace heddle::driver
