// `heddle tune`: measures the configurations of a model's contractions.
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/printable.h"
#include "cli/commands/reports.h"
#include "cli/progress.h"
#include "cli/support.h"
#include "runtime/plan_io.h"

namespace heddle::cli {
namespace {

using driver::TunedProblem;
using driver::TuneReport;

const char* state_of(const TunedProblem& p) {
  if (!p.failure.empty()) return "failed";
  return !p.reached ? "not reached" : p.known ? "known" : "measured";
}

std::string gain_text(const TunedProblem& p) {
  if (!p.failure.empty() || !p.reached) return state_of(p);
  return p.record.winner == p.record.pick ? "the pick" : fmt::format("{:.2f}x", p.gain);
}

// A line for each problem where lines stay, one that is rewritten on a terminal.
void show_progress(Progress& progress, const TunedProblem& problem, size_t done, size_t count, double fraction) {
  const std::string what = fmt::format("{} of {}: {}: {}", done, count, problem.label, gain_text(problem));
  if (!is_terminal(STDERR_FILENO)) {
    if (problem.reached) std::fprintf(stderr, "%s\n", printable(what).c_str());
    return;
  }
  progress.show(what, done == count ? 1 : fraction);
}

struct TuneTotals {
  size_t measured = 0, known = 0, missing = 0, failed = 0, improved = 0;
  // Of all kernels of the model whose problems have records.
  double pick_us = 0, winner_us = 0, pick_uj = 0, winner_uj = 0;
};

TuneTotals totals_of(const TuneReport& report) {
  TuneTotals t;
  for (const TunedProblem& p : report.problems) {
    if (!p.failure.empty()) {
      ++t.failed;
    } else if (!p.reached) {
      ++t.missing;
    } else {
      ++(p.known ? t.known : t.measured);
      t.improved += p.record.winner == p.record.pick ? 0 : 1;
      t.pick_us += p.record.pick_us * static_cast<double>(p.uses);
      t.winner_us += p.record.winner_us * static_cast<double>(p.uses);
      t.pick_uj += p.record.pick_uj * static_cast<double>(p.uses);
      t.winner_uj += p.record.winner_uj * static_cast<double>(p.uses);
    }
  }
  return t;
}

}  // namespace

void print_report(const TuneReport& report) {
  const auto cost_text = [&](double us, double uj) {
    return report.by_energy ? fmt::format("{}, {:.4g} mJ", human_seconds(us * 1e-6), uj * 1e-3)
                            : human_seconds(us * 1e-6);
  };
  const char* cost = report.by_energy ? "time, energy" : "time";
  Table table({"problem", "uses", "model's pick", cost, "winner", cost, "gain"});
  for (const TunedProblem& p : report.problems) {
    const bool has = p.reached && p.failure.empty();
    const bool other = has && p.record.winner != p.record.pick;
    table.add({p.label, fmt::format("{}", p.uses), has ? p.record.pick : "-",
               has ? cost_text(p.record.pick_us, p.record.pick_uj) : "-", other ? p.record.winner : "-",
               other ? cost_text(p.record.winner_us, p.record.winner_uj) : "-", gain_text(p)});
  }
  if (report.problems.empty()) {
    print_line("nothing to tune: no contraction of this model has a choice");
  } else {
    table.print();
  }
  for (const TunedProblem& p : report.problems) {
    if (!p.failure.empty()) print_line(fmt::format("{}: {}", p.label, p.failure));
  }
  const TuneTotals t = totals_of(report);
  print_line(
      fmt::format("{} problems: {} measured now, {} known, {} not reached, {} failed; {} better than the model's pick",
                  report.problems.size(), t.measured, t.known, t.missing, t.failed, t.improved));
  if (t.winner_us > 0) {
    print_line(fmt::format("their kernels together: {} with the model's picks, {} tuned ({:.3f}x)",
                           human_seconds(t.pick_us * 1e-6), human_seconds(t.winner_us * 1e-6),
                           t.pick_us / t.winner_us));
    if (report.by_energy) {
      print_line(fmt::format("their energy together: {:.4g} mJ with the model's picks, {:.4g} mJ tuned ({:.3f}x)",
                             t.pick_uj * 1e-3, t.winner_uj * 1e-3, t.pick_uj / t.winner_uj));
    }
  }
  print_line(fmt::format("took {}; results in {}", human_seconds(report.seconds), report.database));
  print_busy(report.waiting, report.threads);
  if (t.missing > 0) print_line("run it again, or with more --seconds, for those that were not reached");
  if (!report.note.empty()) print_line("note: " + report.note);
}

nlohmann::json json_of(const TuneReport& report) {
  nlohmann::json problems = nlohmann::json::array();
  for (const TunedProblem& p : report.problems) {
    problems.push_back({{"problem", p.problem},
                        {"label", p.label},
                        {"uses", p.uses},
                        {"state", state_of(p)},
                        {"pick", p.record.pick},
                        {"pick_us", p.record.pick_us},
                        {"winner", p.record.winner},
                        {"winner_us", p.record.winner_us},
                        {"pick_uj", p.record.pick_uj},
                        {"winner_uj", p.record.winner_uj},
                        {"gain", p.gain},
                        {"spread", p.record.spread},
                        {"candidates", p.record.candidates},
                        {"samples", p.record.samples},
                        {"failure", p.failure}});
  }
  const TuneTotals t = totals_of(report);
  return {
      {"model", report.model},     {"target", report.target},     {"problems", std::move(problems)},
      {"pick_uj", t.pick_uj},      {"winner_uj", t.winner_uj},    {"objective", report.by_energy ? "energy" : "time"},
      {"pick_us", t.pick_us},      {"winner_us", t.winner_us},    {"measured", t.measured},
      {"known", t.known},          {"not_reached", t.missing},    {"failed", t.failed},
      {"seconds", report.seconds}, {"database", report.database}, {"note", report.note},
      {"waiting", report.waiting}};
}

int tune_command(const Arguments& arguments) {
  if (runtime::is_plan_file(arguments.model)) {
    fail(ErrorCode::kInvalidArgument, arguments.model, "a plan no longer knows how it was made", "Tune the ONNX model");
  }
  if (!(arguments.tune_seconds > 0)) {
    fail(ErrorCode::kInvalidArgument, "--seconds",
         fmt::format("{} is no number of seconds above 0", arguments.tune_seconds));
  }
  const Prepared prepared = prepare(arguments);
  driver::TuneOptions options;
  options.budget_seconds = arguments.tune_seconds;
  options.most = arguments.candidates;
  options.again = arguments.again;
  options.by_energy = arguments.objective == "energy";
  Progress progress;
  if (!arguments.json || is_terminal(STDERR_FILENO)) {
    options.progress = [&](const TunedProblem& problem, size_t done, size_t count, double fraction) {
      show_progress(progress, problem, done, count, fraction);
    };
  }
  const TuneReport report = driver::tune_model(arguments.model, prepared.options, options);
  tell_guess(arguments, prepared.options, report.inputs);
  if (arguments.json) {
    print_json(json_of(report));
  } else {
    print_report(report);
  }
  return totals_of(report).failed > 0 ? 4 : 0;
}

}  // namespace heddle::cli
