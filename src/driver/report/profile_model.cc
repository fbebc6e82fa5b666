#include "driver/report/profile_model.h"

#include <algorithm>
#include <cmath>

#include "base/thread/contention.h"
#include "driver/model/kernel_times.h"
#include "driver/plan/reference.h"
#include "driver/report/inside/node_work.h"
#include "driver/report/inside/sample_gpu.h"
#include "driver/report/inside/sample_inside.h"
#include "driver/report/step_times.h"
#include "driver/tune/measure.h"
#include "driver/verify/random_inputs.h"
#include "profile/advice.h"
#include "runtime/executor.h"

namespace heddle::driver {
namespace {

using profile::Frame;
using profile::NodeId;
using profile::Profile;

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
  TreeBuilder(const CompiledModel& model, const Target& target, const StepTimes& times, const InsideShares& inside,
              Profile& profile)
      : model_(model), graph_(*model.optimised), target_(target), times_(times), inside_(inside), profile_(profile) {
    gpu_ = runtime::runs_on_gpu(*model.plan);
    recorded_ = !times.kernels.empty();
    time_ = profile.tree.add_metric(recorded_ ? profile::metrics::kGpuBusy
                                    : gpu_    ? profile::metrics::kGpuKernels
                                              : profile::metrics::kCpu);
    if (recorded_) kernels_ = profile.tree.add_metric(profile::metrics::kGpuKernels);
    launches_ = profile.tree.add_metric(profile::metrics::kLaunches);
    bandwidth_ = gpu_ ? target.gpu().model.chip.copy_tbps * 1e12 : target.cpu.copy_gbps * 1e9;
    rate_ =
        gpu_ ? target.gpu().model.chip.sustained_tflops * 1e12 : target.cpu.peak_gflops() * 1e9 * target.cpu.threads;
  }

  void build() {
    std::vector<NodeId> rows;
    for (size_t step = 0; step < times_.steps.size(); ++step) rows.push_back(add_step(step));
    add_timeline(rows);
    profile_.tree.add(0, time_, times_.rest);
    profile_.device = profile::Device{machine_of(model_.report.target),
                                      static_cast<int64_t>(bandwidth_),
                                      {{gpu_ ? "f16" : "f32", static_cast<int64_t>(rate_)}}};
  }

 private:
  // Returns the row with the largest part.
  NodeId add_step(size_t step) {
    const auto [group_report, kernel] = model_.built.step_report[step];
    const GroupReport& report = model_.report.groups[group_report];
    const runtime::Step& of_plan = model_.plan->steps[step];
    std::vector<std::pair<std::string, Part>> parts;
    // Copies of outputs come behind all groups.
    const auto group = static_cast<size_t>(model_.built.step_group[step]);
    if (group < model_.built.grouping.groups.size()) {
      parts = parts_of_group(model_.built.grouping.groups[group], measured(step));
    }
    if (parts.empty()) parts.emplace_back(of_plan.label, Part{1, 0, 0});
    const double floor = kernel < 0 ? 0 : KernelTimes(model_.report).floor(report.kernels[static_cast<size_t>(kernel)]);
    return divide(step, parts, floor);
  }

  // Kernels that began early overlap those in front of them and have a track of their own.
  void add_timeline(const std::vector<NodeId>& rows) {
    std::vector<int64_t> until;  // by track
    for (const StepTimes::Slice& slice : times_.one_run) {
      const auto track = static_cast<size_t>(
          std::find_if(until.begin(), until.end(), [&](int64_t end) { return end <= slice.start; }) - until.begin());
      if (track == until.size()) {
        profile_.timeline.tracks.push_back(
            {machine_of(model_.report.target), track == 0 ? "steps of one run" : "steps that began early"});
        until.push_back(0);
      }
      until[track] = slice.start + slice.duration;
      profile_.timeline.slices.push_back({static_cast<uint32_t>(track), slice.start, slice.duration, rows[slice.step]});
    }
  }

  std::vector<double> measured(size_t step) const {
    return inside_.by_step.empty() ? std::vector<double>() : inside_.by_step[step];
  }

  struct Part {
    double share = 0, bytes = 0, flops = 0;
  };
  // Nodes of the model, in the order in which the group has them: several primitives make one.
  // `measured`: their shares; empty: an estimate is taken.
  std::vector<std::pair<std::string, Part>> parts_of_group(const ir::Group& group,
                                                           const std::vector<double>& measured) const {
    const std::vector<NodeWork> work = work_of(graph_, group);
    const std::vector<double> shares = measured.empty() ? shares_of(work, bandwidth_, rate_) : measured;
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

  // A value of a step divided by the parts' shares. Rounded such that the parts sum to the whole.
  class Divided {
   public:
    Divided(int64_t value, double shares) : left_(value), shares_left_(shares) {}
    int64_t next(double share, bool last) {
      const double of_left = shares_left_ > 0 ? std::min(share / shares_left_, 1.0) : 1;
      const int64_t own = last ? left_ : std::llround(static_cast<double>(left_) * of_left);
      left_ -= own;
      shares_left_ -= share;
      return own;
    }

   private:
    int64_t left_;
    double shares_left_;
  };

  NodeId divide(size_t step, const std::vector<std::pair<std::string, Part>>& parts, double floor) {
    const std::string& label = model_.plan->steps[step].label;
    double sum = 0;
    for (const auto& [name, part] : parts) sum += part.share;
    const Frame kernel{"kernel", parts.size() > 1 && measured(step).empty() ? "~ " + label : label};
    Divided time(times_.steps[step], sum), kernels(recorded_ ? times_.kernels[step] : 0, sum);
    NodeId most = 0;
    double largest = -1;
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto& [name, part] = parts[i];
      const bool last = i + 1 == parts.size();
      const NodeId node = profile_.tree.child(node_of(name), kernel);
      profile_.tree.add(node, time_, time.next(part.share, last));
      if (recorded_) profile_.tree.add(node, kernels_, kernels.next(part.share, last));
      if (i == 0) profile_.tree.add(node, launches_, recorded_ ? times_.launches[step] : 1);
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
  const InsideShares& inside_;
  Profile& profile_;
  std::map<NodeId, size_t> rows_;  // of the roofline
  bool gpu_ = false, recorded_ = false;
  size_t time_ = 0, kernels_ = 0, launches_ = 0;
  double bandwidth_ = 1, rate_ = 1;
};

using Facts = std::vector<std::pair<std::string, std::string>>;

// Where the device's records cannot be had (`why`: there is no collector): by events between the steps.
StepTimes time_on_gpu(const runtime::Executor& executor, const std::vector<Tensor>& inputs,
                      profile::GpuCollector* collector, std::string why, Facts& facts) {
  if (collector != nullptr) {
    try {
      StepTimes times = time_by_records(executor, inputs, *collector);
      const Facts recorded = profile::facts_of(collector->stop());
      facts.emplace_back(
          "timed by", times.by_order ? "the device's records, tied to steps by their order" : "the device's records");
      facts.insert(facts.end(), recorded.begin(), recorded.end());
      return times;
    } catch (const Error& error) {
      why = error.why();
    }
    collector->stop();
  }
  facts.emplace_back("timed by", fmt::format("events between steps: no CUPTI ({})", why));
  return time_by_events(executor, inputs);
}

}  // namespace

Profile profile_model(const CompiledModel& model, const Target& target, const ProfileOptions& options) {
  constexpr int kWarm = 2;
  const bool gpu = runtime::runs_on_gpu(*model.plan);
  // Ahead of the executor, which captures the plan's graphs.
  std::unique_ptr<profile::GpuCollector> collector;
  std::string why;
  try {
    if (gpu) collector = profile::GpuCollector::start({.context = step_context});
  } catch (const Error& error) {
    why = error.why();
  }
  const auto make = [&] {
    return runtime::make_executor(model.plan, std::make_shared<ThreadPool>(options.threads), reference_interpreter(),
                                  {.device = options.device});
  };
  std::unique_ptr<runtime::Executor> executor = make();
  const auto inputs = random_inputs(*model.plan, options.seed, options.inputs);
  std::vector<Tensor> ordered;
  for (const runtime::Port& port : model.plan->inputs) ordered.push_back(inputs.at(port.name));
  for (int i = 0; i < kWarm; ++i) executor->run(ordered);
  Facts timing;
  if (!gpu) timing.emplace_back("threads", fmt::format("{}", options.threads));
  const StepTimes times = gpu ? time_on_gpu(*executor, ordered, collector.get(), why, timing)
                              : time_on_cpu(*executor, ordered, options.seconds);

  Profile profile{model.report.model + " on " + machine_of(model.report.target), {}};
  int64_t total = times.rest, launches = 0;
  for (const int64_t step : times.steps) total += step;
  for (const int64_t of_step : times.launches) launches += of_step;
  if (times.launches.empty()) launches = static_cast<int64_t>(times.steps.size());
  profile.facts = {{"runs timed", fmt::format("{}", times.runs)},
                   {"time of a run", fmt::format("{:.3f} ms", static_cast<double>(total) * 1e-6)},
                   {"kernels of a run", fmt::format("{}", launches)}};
  profile.facts.insert(profile.facts.end(), timing.begin(), timing.end());
  const EnergyFigure energy = energy_of_runs(*executor, ordered, options.device, options.seconds);
  if (energy.ok()) profile.facts.emplace_back("joules of a run", fmt::format("{:.6g}", energy.joules));
  profile.facts.emplace_back(energy.ok() ? "energy" : "joules of a run", text_of(energy));
  if (const std::string busy = busy_text(times.waiting, options.threads); !busy.empty()) {
    profile.facts.emplace_back(profile::kBusyFact, busy);
  }
  profile.facts.emplace_back("names with ~", "the time of a kernel for several nodes, divided by an estimate");
  if (gpu) executor.reset();  // its memory is needed for the one that is sampled
  const InsideShares inside =
      gpu ? sample_inside_gpu(model, target, options.seconds, options.device, ordered, make)
          : sample_inside(model, target, options.seconds, [&](const std::function<void(int64_t)>& next) {
              next(0);
              executor->run(ordered, [&](size_t step, const auto&) { next(static_cast<int64_t>(step) + 1); });
              next(-1);
            });
  profile.facts.emplace_back("inside kernels", inside.fact());
  TreeBuilder(model, target, times, inside, profile).build();
  profile.advice = profile::advice_for(profile);
  return profile;
}

}  // namespace heddle::driver
