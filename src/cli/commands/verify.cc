#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/thread/contention.h"
#include "cli/commands/reports.h"
#include "cli/support.h"

namespace heddle::cli {
namespace {

// JSON has no infinity.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(fmt::format("{}", value));
}

nlohmann::json to_json(const ir::Comparison& c) {
  return {{"ok", c.ok},
          {"error", number(c.error)},
          {"bound", number(c.bound)},
          {"worst_index", c.worst},
          {"expected", number(c.expected)},
          {"actual", number(c.actual)}};
}

}  // namespace

nlohmann::json json_of(const driver::VerifyReport& report) {
  nlohmann::json outputs = nlohmann::json::array();
  for (const driver::OutputCheck& check : report.outputs) {
    nlohmann::json one = to_json(check.comparison);
    one["name"] = check.name;
    one["type"] = to_string(check.type);
    one["sensitivity"] = number(check.sensitivity);
    outputs.push_back(std::move(one));
  }
  nlohmann::json all = {{"ok", report.ok},
                        {"outputs", std::move(outputs)},
                        {"run_s", report.run_seconds},
                        {"reference_s", report.reference_seconds},
                        {"waiting", report.waiting}};
  if (report.first) {
    all["first_diverging_group"] = to_json(report.first->comparison);
    all["first_diverging_group"]["group"] = report.first->group;
    all["first_diverging_group"]["kind"] = std::string(to_string(report.first->kind));
    all["first_diverging_group"]["label"] = report.first->label;
    all["first_diverging_group"]["nodes"] = report.first->origins;
  }
  return all;
}

void print_report(const driver::VerifyReport& report) {
  Table table({"output", "type", "error", "bound", "result"});
  for (const driver::OutputCheck& check : report.outputs) {
    table.add({check.name, to_string(check.type), fmt::format("{:.3g}", check.comparison.error),
               fmt::format("{:.3g}", check.comparison.bound + check.sensitivity),
               check.comparison.ok ? "ok" : "FAILED"});
  }
  table.print();
  for (const driver::OutputCheck& check : report.outputs) {
    if (check.sensitivity == 0) continue;
    print_line(fmt::format("{}: the bound of {:.3g} is widened by {:.3g}, which rounding to {} costs this model",
                           check.name, check.comparison.bound, check.sensitivity, to_string(check.type.dtype)));
  }
  print_line(fmt::format("{}; one run {}, float64 reference {}", report.ok ? "verified" : "verification FAILED",
                         human_seconds(report.run_seconds), human_seconds(report.reference_seconds)));
  print_busy(report.waiting, report.threads);
  if (report.ok) return;
  if (!report.first) {
    print_line("every group by itself is within its bound: the passes changed the result, or errors add up");
    return;
  }
  const driver::Divergence& first = *report.first;
  print_line(fmt::format("first diverging group: #{} {} \"{}\"{}", first.group, to_string(first.kind), first.label,
                         first.origins.empty() ? "" : " of " + first.origins));
  print_line(fmt::format("  value {}: error {:.3g} above {:.3g}; element {} is {:.9g}, the reference has {:.9g}",
                         to_string(first.type), first.comparison.error, first.comparison.bound, first.comparison.worst,
                         first.comparison.actual, first.comparison.expected));
}

int verify_command(const Arguments& arguments) {
  const Prepared prepared = prepare(arguments);
  const driver::VerifyReport report =
      driver::verify(arguments.model, prepared.options, prepared.inputs, arguments.seed);
  tell_guess(arguments, prepared.options, report.inputs);
  tell_branches(report.branch_guess);
  if (arguments.json) {
    print_json(json_of(report));
  } else {
    print_report(report);
  }
  return report.ok ? 0 : 1;
}

}  // namespace heddle::cli
