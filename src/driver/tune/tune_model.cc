#include "driver/tune/tune_model.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread/cancel.h"
#include "base/thread/contention.h"
#include "driver/compile/tuned_configs.h"
#include "driver/options/options.h"
#include "driver/plan/plan_builder.h"
#include "driver/shapes/guess.h"
#include "driver/shapes/import.h"
#include "driver/target/backend.h"
#include "passes/pass.h"
#include "schedule/region/cost.h"
#include "tune/tuner.h"

namespace heddle::driver {
namespace {

// What one contraction of the model asks.
struct Question {
  std::string problem;
  std::vector<schedule::Config> candidates;
};

// Notes the question of a group and lets the model decide.
class Listener : public schedule::ConfigSource {
 public:
  std::optional<schedule::Config> choose(const schedule::Problem& problem, const Candidates& candidates) override {
    if (!question) question = Question{problem.text, candidates()};
    return std::nullopt;
  }
  std::optional<Question> question;
};

// Answers with one configuration.
class Fixed : public schedule::ConfigSource {
 public:
  explicit Fixed(const schedule::Config& config) : config_(config) {}
  std::optional<schedule::Config> choose(const schedule::Problem&, const Candidates&) override { return config_; }

 private:
  const schedule::Config& config_;
};

struct Task {
  const ir::Graph* graph;
  ir::Group group;
  Question question;
  TunedProblem report;
  double floor_seconds = 0;  // of all its uses
};

// The problems of a graph and of the bodies of its loops and branches.
class Collector {
 public:
  explicit Collector(const Settings& settings) : settings_(settings) {}

  void collect(const ir::Graph& graph) {
    for (ir::Group& group : group_nodes(graph, settings_.target, settings_.fusion, settings_.rules).groups) {
      const bool has_choice = group.kind == ir::GroupKind::kContraction || group.kind == ir::GroupKind::kAttention ||
                              group.kind == ir::GroupKind::kBackToBack;
      if (has_choice) add(graph, std::move(group));
    }
    for (const ir::Node& node : graph.nodes()) {
      constants_ += constant_bytes(node);
      if (node.op == ir::Op::kLoop) collect(node.attrs.graph("body"));
      if (node.op == ir::Op::kIf) collect(node.attrs.graph("then")), collect(node.attrs.graph("else"));
    }
  }

  // Heaviest first.
  std::vector<Task> tasks() {
    std::vector<Task> list;
    for (auto& [problem, task] : tasks_) list.push_back(std::move(task));
    std::stable_sort(list.begin(), list.end(),
                     [](const Task& a, const Task& b) { return a.floor_seconds > b.floor_seconds; });
    return list;
  }
  int64_t constants() const { return constants_; }

 private:
  static int64_t constant_bytes(const ir::Node& node) {
    return node.op == ir::Op::kConstant ? static_cast<int64_t>(node.attrs.tensor("value").bytes()) : 0;
  }

  void add(const ir::Graph& graph, ir::Group group) {
    Listener listener;
    schedule::ScheduledGroup scheduled;
    try {
      scheduled = schedule::schedule(graph, group, settings_.target, &listener);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupportedOperator && error.code() != ErrorCode::kUnsupportedType) throw;
      return;  // the reference evaluator runs it
    }
    if (!listener.question || listener.question->candidates.size() < 2) return;
    const std::string problem = listener.question->problem;
    const auto [at, is_new] = tasks_.try_emplace(problem);
    Task& task = at->second;
    if (is_new) {
      task.graph = &graph;
      task.group = std::move(group);
      task.question = std::move(*listener.question);
      task.report.problem = problem;
      task.report.label = scheduled.kernels.empty() ? problem : scheduled.kernels.back().label;
    }
    ++task.report.uses;
    for (const schedule::ScheduledKernel& kernel : scheduled.kernels) task.floor_seconds += kernel.floor_seconds;
  }

  const Settings& settings_;
  std::map<std::string, Task> tasks_;
  int64_t constants_ = 0;
};

class ModelTuner {
 public:
  ModelTuner(const Settings& settings, const TuneOptions& options, int64_t constants)
      : settings_(settings),
        options_(options),
        database_(tune::user_database()),
        place_(tune::place_of(settings.target)),
        flush_bytes_(std::clamp(constants, 4 * settings.target.cpu.l2_bytes, kMostFlush)) {
    if (options.by_energy) energy_ = EnergyCounter::of(settings.target.fingerprint(), settings.device);
  }

  std::vector<TunedProblem> run(std::vector<Task> tasks) {
    double left = 0, all = 0;
    for (const Task& task : tasks) all += task.floor_seconds;
    left = all;
    std::vector<TunedProblem> reports;
    for (size_t i = 0; i < tasks.size(); ++i) {
      check_cancelled();
      Task& task = tasks[i];
      tune(task, left > 0 ? task.floor_seconds / left : 1);
      left -= task.floor_seconds;
      reports.push_back(std::move(task.report));
      if (options_.progress) {
        options_.progress(reports.back(), i + 1, tasks.size(), all > 0 ? std::clamp(1 - left / all, 0.0, 1.0) : 1);
      }
    }
    return reports;
  }
  // Contention::waiting() of all contests.
  double waiting() const { return timed_ > 0 ? waited_ / timed_ : 0; }

 private:
  // What a model of any size leaves in no cache; a virtual machine may report the last-level cache of a whole socket.
  static constexpr int64_t kMostFlush = int64_t{64} << 20;

  void tune(Task& task, double share) {
    TunedProblem& report = task.report;
    if (!options_.again) {
      const auto record = database_.find(place_, report.problem);
      if (record && record->by_energy() == options_.by_energy) {
        report.record = *record;
        report.gain = record->gain();
        report.known = report.reached = true;
        return;
      }
    }
    const double remaining = options_.budget_seconds - (wall_seconds() - start_);
    if (remaining <= 0) return;
    report.reached = true;
    try {
      measure(task, remaining, std::max(share, 0.2) * remaining);
    } catch (const Error& error) {
      report.failure = error.what();
    }
  }

  void measure(Task& task, double remaining, double budget) {
    const double start = wall_seconds();
    // Compiling takes longer than timing: as many candidates as the budget has room for, at the pace so far.
    const auto room = static_cast<int64_t>(std::min(budget / seconds_per_candidate_, 1e6));
    const size_t most = static_cast<size_t>(std::clamp<int64_t>(room, 2, std::max(options_.most, 2)));
    const size_t count = std::min(most, task.question.candidates.size());
    std::vector<schedule::ScheduledGroup> groups;
    for (size_t i = 0; i < count; ++i) {
      Fixed fixed(task.question.candidates[i]);
      groups.push_back(schedule::schedule(*task.graph, task.group, settings_.target, &fixed));
    }
    const std::unique_ptr<tune::Trial> trial = make_trial(*task.graph, std::move(groups));
    tune::TunerOptions options;
    options.budget_seconds = std::max(0.0, remaining - (wall_seconds() - start));
    options.energy = energy_.get();
    const Contention contention;
    const double contest = wall_seconds();
    const tune::TunerResult result = tune::choose_best(*trial, options);
    const double timed = wall_seconds() - contest;
    waited_ += contention.waiting() * timed, timed_ += timed;
    seconds_per_candidate_ = (wall_seconds() - start) / static_cast<double>(count);
    for (size_t i = 0; i < count; ++i) {
      const tune::CandidateTimes& times = result.times[i];
      const std::string energy = times.joules > 0 ? fmt::format(", {:.1f} uJ", times.joules * 1e6) : "";
      log(LogLevel::kDebug, fmt::format("tune {}: {}: {:.1f} us{}, {} runs{} {}", task.report.problem,
                                        schedule::name_of(task.question.candidates[i]), times.median * 1e6, energy,
                                        times.seconds.size(), times.dropped ? ", dropped" : "", times.failure));
    }
    keep(task, result);
  }

  std::unique_ptr<tune::Trial> make_trial(const ir::Graph& graph, std::vector<schedule::ScheduledGroup> groups) const {
    return backend_of(settings_.target)
        .trial(std::move(groups), settings_.target, settings_.device, values_of(graph), flush_bytes_);
  }

  void keep(Task& task, const tune::TunerResult& result) {
    TunedProblem& report = task.report;
    if (!result.ok) {
      report.failure = result.times.front().failure;
      return;
    }
    report.gain = result.gain;
    report.record = tune::record_of(result, schedule::name_of(task.question.candidates[result.winner]),
                                    schedule::name_of(task.question.candidates[0]));
    database_.store(place_, report.problem, report.record);
  }

  const Settings& settings_;
  const TuneOptions& options_;
  tune::Database& database_;
  const tune::Place place_;
  const int64_t flush_bytes_;
  std::unique_ptr<EnergyCounter> energy_;
  const double start_ = wall_seconds();
  double seconds_per_candidate_ = 0.5;
  double waited_ = 0, timed_ = 0;
};

}  // namespace

TuneReport tune_model(const std::string& path, const CompileOptions& options, const TuneOptions& tuning) {
  const double start = wall_seconds();
  const Settings settings = resolve(options);
  require_device(settings);
  const onnx::Imported imported = import_file(path, options);
  passes::PipelineOptions pipeline;
  pipeline.disabled = options.disabled_passes;
  const ir::Graph graph = passes::run_pipeline(imported.graph, pass_context(settings), pipeline);
  Collector collector(settings);
  collector.collect(graph);
  TuneReport report;
  report.model = path;
  report.inputs = inputs_of(imported.graph);
  report.target = settings.target.fingerprint();
  ModelTuner tuner(settings, tuning, collector.constants());
  report.problems = tuner.run(collector.tasks());
  if (settings.device < 0) report.waiting = tuner.waiting();
  report.threads = settings.target.cpu.threads;
  report.by_energy = tuning.by_energy;
  report.database = tune::user_database().path();
  report.note = tune::user_database().note();
  report.seconds = wall_seconds() - start;
  return report;
}

}  // namespace heddle::driver
