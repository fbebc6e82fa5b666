#include "driver/report/profile_model.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "driver/report/kernel_times.h"
#include "driver/report/node_work.h"
#include "driver/verify/random_inputs.h"
#include "driver/verify/reference.h"
#include "profile/advice.h"
#include "runtime/executor.h"

namespace heddle::driver {
namespace {

using profile::Frame;
using profile::NodeId;
using profile::Profile;

int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

// What the steps of a run took on average, on a GPU as median, and what is left of the run's own time.
struct StepTimes {
  struct Span {
    int64_t start = 0, duration = 0;
  };
  std::vector<int64_t> steps;
  std::vector<Span> one_run;  // by step: the last run; on a GPU the medians one behind the other
  int64_t rest = 0, runs = 0;
};

StepTimes time_on_cpu(const runtime::Executor& executor, const std::vector<Tensor>& inputs, double seconds) {
  constexpr int64_t kFewest = 5, kMost = 10000;
  StepTimes times;
  times.steps.assign(executor.plan().steps.size(), 0);
  times.one_run.resize(times.steps.size());
  const double begin = wall_seconds();
  while (times.runs < kMost && (times.runs < kFewest || wall_seconds() - begin < seconds)) {
    const double start = wall_seconds();
    double last = start;
    int64_t in_steps = 0;
    executor.run(inputs, [&](size_t step, const auto&) {
      const double now = wall_seconds();
      const int64_t taken = nanoseconds(now - last);
      times.steps[step] += taken;
      times.one_run[step] = {nanoseconds(last - start), taken};
      in_steps += taken;
      last = wall_seconds();
    });
    times.rest += std::max<int64_t>(nanoseconds(wall_seconds() - start) - in_steps, 0);
    ++times.runs;
  }
  // Of one run, so that profiles of different lengths compare.
  for (int64_t& step : times.steps) step = (step + times.runs / 2) / times.runs;
  times.rest /= times.runs;
  return times;
}

StepTimes time_on_gpu(const runtime::Executor& executor, const std::vector<Tensor>& inputs) {
  constexpr int kRuns = 50;
  StepTimes times;
  int64_t at = 0;
  for (const double seconds : executor.step_seconds(inputs, kRuns)) {
    times.steps.push_back(nanoseconds(seconds));
    times.one_run.push_back({at, times.steps.back()});
    at += times.steps.back();
  }
  times.runs = kRuns;
  return times;
}

// "/layers.3/attn/MatMul" -> layers.3, attn, MatMul.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    if (end > at) parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  if (parts.empty()) parts.push_back(name);
  return parts;
}

class TreeBuilder {
 public:
  TreeBuilder(const CompiledModel& model, const Target& target, const StepTimes& times, Profile& profile)
      : model_(model), graph_(*model.optimised), target_(target), times_(times), profile_(profile) {
    gpu_ = runtime::runs_on_gpu(*model.plan);
    time_ = profile.tree.add_metric(gpu_ ? profile::metrics::kGpuKernels : profile::metrics::kCpu);
    launches_ = profile.tree.add_metric(profile::metrics::kLaunches);
    bandwidth_ = gpu_ ? target.cuda.model.chip.copy_tbps * 1e12 : target.cpu.copy_gbps * 1e9;
    rate_ = gpu_ ? target.cuda.model.chip.sustained_tflops * 1e12 : target.cpu.peak_gflops() * 1e9 * target.cpu.threads;
  }

  void build() {
    profile_.timeline.tracks.push_back({machine_of(model_.report.target), "steps of one run"});
    for (size_t step = 0; step < times_.steps.size(); ++step) add_step(step);
    profile_.tree.add(0, time_, times_.rest);
    profile_.device = profile::Device{machine_of(model_.report.target),
                                      static_cast<int64_t>(bandwidth_),
                                      {{gpu_ ? "f16" : "f32", static_cast<int64_t>(rate_)}}};
  }

 private:
  void add_step(size_t step) {
    const auto [group_report, kernel] = model_.built.step_report[step];
    const GroupReport& report = model_.report.groups[group_report];
    const runtime::Step& of_plan = model_.plan->steps[step];
    std::vector<std::pair<std::string, Part>> parts;
    // Copies of outputs come behind all groups.
    const auto group = static_cast<size_t>(model_.built.step_group[step]);
    if (group < model_.built.grouping.groups.size()) parts = parts_of_group(model_.built.grouping.groups[group]);
    if (parts.empty()) parts.emplace_back(of_plan.label, Part{1, 0, 0});
    const double floor = kernel < 0 ? 0 : KernelTimes(model_.report).floor(report.kernels[static_cast<size_t>(kernel)]);
    const NodeId node = divide(of_plan.label, parts, times_.steps[step], floor);
    const StepTimes::Span& span = times_.one_run[step];
    profile_.timeline.slices.push_back({0, span.start, span.duration, node});
  }

  struct Part {
    double share = 0, bytes = 0, flops = 0;
  };
  // Nodes of the model, in the order in which the group has them: several primitives make one.
  std::vector<std::pair<std::string, Part>> parts_of_group(const ir::Group& group) const {
    const std::vector<NodeWork> work = work_of(graph_, group);
    const std::vector<double> shares = shares_of(work, bandwidth_, rate_);
    std::vector<std::pair<std::string, Part>> parts;
    for (size_t i = 0; i < group.nodes.size(); ++i) {
      const std::vector<ir::OriginId>& origins = graph_.node(group.nodes[i]).origins;
      const double each = 1 / static_cast<double>(std::max<size_t>(origins.size(), 1));
      for (const ir::OriginId origin : origins) {
        Part& part = part_of(parts, graph_.origin(origin).node);
        part.share += shares[i] * each;
        part.bytes += static_cast<double>(work[i].bytes) * each;
        part.flops += static_cast<double>(work[i].flops) * each;
      }
    }
    return parts;
  }
  static Part& part_of(std::vector<std::pair<std::string, Part>>& parts, const std::string& name) {
    const auto found = std::find_if(parts.begin(), parts.end(), [&](const auto& part) { return part.first == name; });
    if (found != parts.end()) return found->second;
    return parts.emplace_back(name, Part{}).second;
  }

  // Returns the row with the largest part.
  NodeId divide(const std::string& label, const std::vector<std::pair<std::string, Part>>& parts, int64_t time,
                double floor) {
    double sum = 0;
    for (const auto& [name, part] : parts) sum += part.share;
    const Frame kernel{"kernel", parts.size() > 1 ? "~ " + label : label};
    int64_t left = time;
    double shares_left = sum;
    NodeId most = 0;
    double largest = -1;
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto& [name, part] = parts[i];
      // Rounded such that the parts sum to the whole.
      const double share = shares_left > 0 ? std::min(part.share / shares_left, 1.0) : 1;
      const int64_t own = i + 1 == parts.size() ? left : std::llround(static_cast<double>(left) * share);
      left -= own;
      shares_left -= part.share;
      const NodeId node = profile_.tree.child(node_of(name), kernel);
      profile_.tree.add(node, time_, own);
      if (i == 0) profile_.tree.add(node, launches_, 1);
      if (part.share > largest) most = node, largest = part.share;
      if (floor <= 0) continue;
      const double of_floor = sum > 0 ? part.share / sum : 1;
      const bool memory = part.bytes / bandwidth_ >= part.flops / rate_;
      const auto [row, is_new] = rows_.try_emplace(node, profile_.roofline.size());
      if (is_new) profile_.roofline.push_back({node, 0, 0, 0, memory ? "memory" : "compute"});
      profile::RooflineRow& of_node = profile_.roofline[row->second];
      of_node.floor_ns += std::llround(floor * of_floor * 1e9);
      of_node.bytes += std::llround(part.bytes);
      of_node.flops += std::llround(part.flops);
    }
    return most;
  }

  NodeId node_of(const std::string& name) {
    const std::vector<std::string> parts = parts_of(name);
    NodeId at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) at = profile_.tree.child(at, Frame{"module", parts[i]});
    return profile_.tree.child(at, Frame{"node", parts.back()});
  }

  const CompiledModel& model_;
  const ir::Graph& graph_;
  const Target& target_;
  const StepTimes& times_;
  Profile& profile_;
  std::map<NodeId, size_t> rows_;  // of the roofline
  bool gpu_ = false;
  size_t time_ = 0, launches_ = 0;
  double bandwidth_ = 1, rate_ = 1;
};

}  // namespace

Profile profile_model(const CompiledModel& model, const Target& target, const ProfileOptions& options) {
  constexpr int kWarm = 2;
  const auto executor = runtime::make_executor(model.plan, std::make_shared<ThreadPool>(options.threads),
                                               reference_interpreter(), options.device);
  const auto inputs = random_inputs(*model.plan, options.seed, options.inputs);
  std::vector<Tensor> ordered;
  for (const runtime::Port& port : model.plan->inputs) ordered.push_back(inputs.at(port.name));
  for (int i = 0; i < kWarm; ++i) executor->run(ordered);
  const bool gpu = runtime::runs_on_gpu(*model.plan);
  const StepTimes times = gpu ? time_on_gpu(*executor, ordered) : time_on_cpu(*executor, ordered, options.seconds);

  Profile profile{model.report.model + " on " + machine_of(model.report.target), {}};
  int64_t total = times.rest;
  for (const int64_t step : times.steps) total += step;
  profile.facts = {{"runs timed", fmt::format("{}", times.runs)},
                   {"time of a run", fmt::format("{:.3f} ms", static_cast<double>(total) * 1e-6)},
                   {"kernels of a run", fmt::format("{}", times.steps.size())}};
  if (!gpu) profile.facts.emplace_back("threads", fmt::format("{}", options.threads));
  profile.facts.emplace_back("names with ~", "the time of a kernel for several nodes, divided by an estimate");
  TreeBuilder(model, target, times, profile).build();
  profile.advice = profile::advice_for(profile);
  return profile;
}

}  // namespace heddle::driver
