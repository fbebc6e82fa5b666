#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file/file.h"
#include "cli/commands/kernel_texts.h"
#include "cli/commands/overview.h"
#include "cli/commands/reports.h"
#include "cli/support.h"
#include "driver/model/kernel_times.h"
#include "driver/options/options.h"
#include "driver/report/collapse.h"
#include "driver/report/svg.h"
#include "driver/tune/measure.h"
#include "driver/verify/random_inputs.h"
#include "runtime/plan_io.h"
#include "schedule/region/stitch.h"

namespace heddle::cli {
namespace {

using driver::CompileReport;
using driver::GroupReport;

struct Totals {
  size_t kernels = 0, reference = 0, views = 0, control = 0;
  int64_t bytes_inside = 0;
  double floor = 0;
};

bool is_reference(const GroupReport& group) {
  return group.kind == ir::GroupKind::kReference || !group.fallback.empty();
}

Totals totals_of(const CompileReport& report) {
  Totals totals;
  for (const GroupReport& group : report.groups) {
    totals.kernels += group.kernels.size();
    totals.bytes_inside += group.bytes_inside;
    if (group.view) {
      ++totals.views;
    } else if (group.kind == ir::GroupKind::kControl) {
      ++totals.control;
    } else if (is_reference(group)) {
      ++totals.reference;
    }
    for (const driver::KernelReport& kernel : group.kernels) totals.floor += kernel.floor_seconds;
  }
  return totals;
}

std::string signature(const GroupReport& group) {
  std::string text = fmt::format("{}|{}|{}", group.depth, static_cast<int>(group.kind), group.ops);
  for (const driver::KernelReport& kernel : group.kernels) {
    text += "|" + kernel.symbol;
    for (const CudaLaunch& launch : kernel.launches) text += "|" + launch.symbol;
  }
  return text;
}

void print_summary(const CompileReport& report) {
  const Totals totals = totals_of(report);
  print_line(fmt::format("{} for {}", report.model, report.target));
  print_line(fmt::format("{} nodes of the model, {} primitives, {} after the passes", report.model_nodes,
                         report.nodes_imported, report.nodes_optimised));
  print_line(fmt::format(
      "{} groups: {} kernels ({} distinct), {} views without a kernel, {} loops and branches, {} by "
      "the reference evaluator",
      report.groups.size(), totals.kernels, report.distinct_kernels, totals.views, totals.control, totals.reference));
  const bool is_ir = report.model_nodes == 0;  // textual IR: nodes have no origin
  print_line(fmt::format("kernels before: {} (one per {}); after: {}",
                         is_ir ? report.nodes_imported : report.model_nodes, is_ir ? "primitive" : "node of the model",
                         totals.kernels + totals.reference));
  print_line(
      fmt::format("memory traffic saved by fusion: {} per run", human_bytes(static_cast<double>(totals.bytes_inside))));
  print_line(fmt::format("intermediate values {}, constants {}, hardware floor {}{}",
                         human_bytes(static_cast<double>(report.arena_bytes)),
                         human_bytes(static_cast<double>(report.constant_bytes)), human_seconds(totals.floor),
                         report.target.starts_with("cuda") ? "" : " on one thread"));
  if (report.tuned > 0) {
    print_line(fmt::format("tuned: {} of {} distinct contractions with a choice run as `heddle tune` found fastest",
                           report.tuned, report.contractions));
  }
}

double measured_of(const GroupReport& group) {
  double seconds = group.measured_seconds;
  for (const driver::KernelReport& kernel : group.kernels) seconds += kernel.measured_seconds;
  return seconds;
}

std::string measured_text(double seconds) {
  return seconds > 0 ? ", measured " + human_seconds(seconds) : "";
}

// What a stitch group moves and how long that takes, over all its kernels.
std::string traffic_of(const GroupReport& group) {
  double moved = 0, predicted = 0;
  int64_t barriers = 0;
  for (const driver::KernelReport& kernel : group.kernels) {
    moved += kernel.stitch.bytes_moved;
    predicted += kernel.stitch.predicted_seconds;
    barriers += kernel.stitch.barriers;
  }
  return fmt::format("moves {} ({} compulsory), {} kernels, {} barriers inside, predicted {}{}", human_bytes(moved),
                     human_bytes(group.compulsory_bytes), group.kernels.size(), barriers, human_seconds(predicted),
                     measured_text(measured_of(group)));
}

void print_stitch_kernel(const driver::KernelReport& kernel, const std::string& indent) {
  const schedule::StitchFacts& facts = kernel.stitch;
  print_line(fmt::format("{}  {}; on chip {}, moves {}, predicted {}{}", indent, facts.mapping,
                         human_bytes(static_cast<double>(facts.on_chip_bytes)), human_bytes(facts.bytes_moved),
                         human_seconds(facts.predicted_seconds), measured_text(kernel.measured_seconds)));
  for (const schedule::SchemeChoice& choice : facts.schemes) {
    print_line(fmt::format("{}  {}dominant {}: {}, {}", indent, choice.dominant ? "" : "sub-", choice.value,
                           to_string(choice.scheme), choice.reason));
  }
}

// What is told of kernels beside the report.
struct Details {
  const KernelTexts& texts;
  const driver::KernelTimes& times;
};

void print_group(const GroupReport& group, const Details& details, size_t index, const std::string& indent) {
  const std::string deeper = indent + std::string(static_cast<size_t>(group.depth) * 2, ' ');
  const std::string kind = group.view ? "view" : std::string(to_string(group.kind));
  std::string inside;
  if (group.bytes_inside > 0) inside = ", keeps " + human_bytes(static_cast<double>(group.bytes_inside)) + " inside";
  print_line(fmt::format("{}#{} {}: {}{}", deeper, index, kind, group.ops, inside));
  if (!group.origins.empty()) print_line(fmt::format("{}    of {}", deeper, group.origins));
  if (!group.fallback.empty()) print_line(fmt::format("{}    by the reference evaluator: {}", deeper, group.fallback));
  const bool stitch = group.kind == ir::GroupKind::kStitch && !group.kernels.empty();
  if (stitch) print_line(fmt::format("{}    {}", deeper, traffic_of(group)));
  if (group.kind == ir::GroupKind::kControl && group.measured_seconds > 0) {
    print_line(fmt::format("{}    measured {}", deeper, human_seconds(group.measured_seconds)));
  }
  for (const driver::KernelReport& kernel : group.kernels) {
    const std::string family = kernel.family.empty() ? "" : kernel.family + ", ";
    print_line(fmt::format("{}    kernel {}: {} [{}]: {}{}, floor {}{}", deeper, details.texts.numbers_of(kernel),
                           kernel.label, kernel.symbol, family, grid_text(kernel), human_seconds(kernel.floor_seconds),
                           stitch ? "" : measured_text(kernel.measured_seconds)));
    if (const auto excess = details.times.excess(kernel)) {
      print_line(fmt::format("{}      {:.1f} times its floor: {}", deeper, excess->times, excess->why));
    }
    if (stitch) {
      print_stitch_kernel(kernel, deeper + "    ");
      continue;
    }
    const auto said = [&](const std::string& note) { return note.find(kernel.reason) != std::string::npos; };
    if (std::none_of(group.notes.begin(), group.notes.end(), said))
      print_line(fmt::format("{}      {}", deeper, kernel.reason));
  }
  for (const schedule::Boundary& boundary : group.boundaries) {
    print_line(fmt::format("{}    boundary at {} ({}): {}", deeper, boundary.value, human_bytes(boundary.bytes),
                           boundary.reason));
  }
  for (const std::string& note : group.notes) print_line(fmt::format("{}    - {}", deeper, note));
}

void print_groups(const CompileReport& report, const Details& details) {
  print_line("\nGroups");
  std::vector<std::string> signatures;
  for (const GroupReport& group : report.groups) signatures.push_back(signature(group));
  size_t next = 0;
  for (const driver::Repeat& repeat : driver::find_repeats(signatures)) {
    for (; next < repeat.begin; ++next) print_group(report.groups[next], details, next, "");
    print_line(fmt::format("{} times:", repeat.count));
    for (; next < repeat.begin + repeat.period; ++next) print_group(report.groups[next], details, next, "  ");
    next = repeat.begin + repeat.period * repeat.count;
  }
  for (; next < report.groups.size(); ++next) print_group(report.groups[next], details, next, "");
}

void print_decisions(const CompileReport& report) {
  struct Count {
    size_t times = 0;
    std::string example;
  };
  std::map<std::pair<std::string, std::string>, Count> refused;
  size_t made = 0;
  for (const ir::Decision& decision : report.decisions) {
    if (decision.yes) {
      ++made;
      continue;
    }
    Count& count = refused[{decision.rule, decision.reason}];
    if (count.times++ == 0) count.example = decision.what;
  }
  print_line(fmt::format("\nFusions: {} made; refused:", made));
  if (refused.empty()) print_line("  none");
  for (const auto& [key, count] : refused) {
    print_line(fmt::format("  {} x {}: {} (for example {})", count.times, key.first, key.second, count.example));
  }
}

void print_stages(const CompileReport& report) {
  print_line("\nTime");
  std::map<std::string, double> passes;
  for (const driver::StageTime& stage : report.stages) {
    if (stage.stage.starts_with("pass ")) {
      passes[stage.stage.substr(5)] += stage.seconds;
    } else {
      print_line(fmt::format("  {:10} {}", stage.stage, human_seconds(stage.seconds)));
    }
  }
  for (const auto& [name, seconds] : passes) {
    if (seconds >= 1e-3) print_line(fmt::format("    pass {}: {}", name, human_seconds(seconds)));
  }
}

nlohmann::json to_json(const schedule::StitchFacts& facts) {
  nlohmann::json schemes = nlohmann::json::array();
  for (const schedule::SchemeChoice& choice : facts.schemes) {
    schemes.push_back({{"value", choice.value},
                       {"scheme", std::string(to_string(choice.scheme))},
                       {"dominant", choice.dominant},
                       {"reason", choice.reason}});
  }
  return {{"mapping", facts.mapping},   {"schemes", std::move(schemes)},    {"on_chip_bytes", facts.on_chip_bytes},
          {"barriers", facts.barriers}, {"bytes_moved", facts.bytes_moved}, {"predicted_s", facts.predicted_seconds}};
}

nlohmann::json to_json(const GroupReport& group, const driver::KernelTimes& times) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const driver::KernelReport& kernel : group.kernels) {
    kernels.push_back({{"label", kernel.label},
                       {"symbol", kernel.symbol},
                       {"algorithm", kernel.family},
                       {"reason", kernel.reason},
                       {"tasks", kernel.tasks},
                       {"launches", kernel.launches.size()},
                       {"floor_s", kernel.floor_seconds}});
    if (group.kind == ir::GroupKind::kStitch) kernels.back()["stitch"] = to_json(kernel.stitch);
    if (kernel.measured_seconds > 0) kernels.back()["measured_s"] = kernel.measured_seconds;
    if (const auto excess = times.excess(kernel)) {
      kernels.back()["far_from_floor"] = {{"times", excess->times}, {"why", excess->why}};
    }
  }
  nlohmann::json boundaries = nlohmann::json::array();
  for (const schedule::Boundary& boundary : group.boundaries) {
    boundaries.push_back({{"value", boundary.value}, {"bytes", boundary.bytes}, {"reason", boundary.reason}});
  }
  return {{"kind", std::string(to_string(group.kind))},
          {"depth", group.depth},
          {"trips", group.trips},
          {"ops", group.ops},
          {"nodes", group.origins},
          {"primitives", group.nodes},
          {"view", group.view},
          {"fallback", group.fallback},
          {"bytes_inside", group.bytes_inside},
          {"notes", group.notes},
          {"compulsory_bytes", group.compulsory_bytes},
          {"boundaries", std::move(boundaries)},
          {"measured_s", measured_of(group)},
          {"kernels", std::move(kernels)}};
}

// `which`: a number; "all".
void print_kernels(const KernelTexts& texts, const std::string& which) {
  size_t number = 0;
  const char* end = which.data() + which.size();
  const auto [stop, error] = std::from_chars(which.data(), end, number);
  const bool all = which == kAllKernels;
  if (!all && (error != std::errc() || stop != end || number < 1 || number > texts.size())) {
    fail(ErrorCode::kInvalidArgument, "--kernels=" + which,
         fmt::format("the model has {} kernels, numbered from 1", texts.size()), "`heddle explain -v` lists them");
  }
  for (size_t n = all ? 1 : number; n <= (all ? texts.size() : number); ++n) {
    if (n > 1 && all) print_line("");
    print_line(fmt::format("kernel {}: {}", n, texts.file_name(n)), Style::kBold);
    // Comments, which have the model's names, are printable.
    print_raw(texts.file(n));
  }
}

// Outputs in the memory of inputs: those that cost no copy together, the others each with its reason.
void print_aliases(const CompileReport& report) {
  size_t in_place = 0;
  double bytes = 0;
  for (const driver::AliasReport& alias : report.aliases) {
    if (!alias.why_copied.empty()) continue;
    ++in_place;
    bytes += static_cast<double>(alias.bytes);
  }
  if (in_place > 0) {
    print_line(
        fmt::format("in place     {} outputs in the memory of inputs, {} not copied", in_place, human_bytes(bytes)));
  }
  for (const driver::AliasReport& alias : report.aliases) {
    if (alias.why_copied.empty()) continue;
    print_line(fmt::format("note: output {} in the memory of {}: {} copied: {}", alias.output, alias.input,
                           human_bytes(static_cast<double>(alias.bytes)), alias.why_copied));
  }
}

nlohmann::json aliases_json(const CompileReport& report) {
  nlohmann::json aliases = nlohmann::json::array();
  for (const driver::AliasReport& alias : report.aliases) {
    aliases.push_back(
        {{"output", alias.output}, {"input", alias.input}, {"bytes", alias.bytes}, {"why_copied", alias.why_copied}});
  }
  return aliases;
}

std::string_view form_name(passes::QuantisedProduct::Form form) {
  using Form = passes::QuantisedProduct::Form;
  return form == Form::kFloats ? "floats" : form == Form::kIntegers ? "integers" : "packed weights";
}

}  // namespace

nlohmann::json json_of(const CompileReport& report) {
  nlohmann::json groups = nlohmann::json::array(), decisions = nlohmann::json::array(),
                 stages = nlohmann::json::array(), quantised = nlohmann::json::array();
  const driver::KernelTimes times(report);
  for (const GroupReport& group : report.groups) groups.push_back(to_json(group, times));
  for (const ir::Decision& d : report.decisions) {
    decisions.push_back({{"fused", d.yes}, {"rule", d.rule}, {"what", d.what}, {"reason", d.reason}});
  }
  for (const passes::QuantisedProduct& p : report.quantised) {
    quantised.push_back({{"what", p.what},
                         {"form", form_name(p.form)},
                         {"bits", p.bits},
                         {"reason", p.reason},
                         {"saved_bytes", p.saved_bytes}});
  }
  for (const driver::StageTime& stage : report.stages) {
    stages.push_back({{"stage", stage.stage}, {"seconds", stage.seconds}});
  }
  const Totals totals = totals_of(report);
  return {{"model", report.model},
          {"target", report.target},
          {"model_nodes", report.model_nodes},
          {"primitives", report.nodes_imported},
          {"primitives_after_passes", report.nodes_optimised},
          {"kernels", totals.kernels},
          {"distinct_kernels", report.distinct_kernels},
          {"reference_groups", totals.reference},
          {"bytes_saved", totals.bytes_inside},
          {"arena_bytes", report.arena_bytes},
          {"constant_bytes", report.constant_bytes},
          {"floor_s", totals.floor},
          {"contractions", report.contractions},
          {"tuned", report.tuned},
          {"remarks", report.remarks},
          {"waiting", report.waiting},
          {"aliases", aliases_json(report)},
          {"groups", std::move(groups)},
          {"decisions", std::move(decisions)},
          {"quantised", std::move(quantised)},
          {"stages", std::move(stages)}};
}

void print_report(const driver::CompiledModel& model, const Target& target, bool verbose) {
  print_overview(model.report);
  print_busy(model.report.waiting, model.report.threads);
  for (const std::string& remark : model.report.remarks) print_line("note: " + remark);
  print_aliases(model.report);
  if (!verbose) return;
  print_line("");
  print_summary(model.report);
  print_groups(model.report, {KernelTexts(model, target), driver::KernelTimes(model.report)});
  print_decisions(model.report);
  print_stages(model.report);
}

int explain_command(const Arguments& arguments) {
  if (runtime::is_plan_file(arguments.model)) {
    fail(ErrorCode::kInvalidArgument, arguments.model, "a plan no longer knows how it was made",
         "Explain the ONNX model");
  }
  const Prepared prepared = prepare(arguments);
  const driver::Settings settings = driver::resolve(prepared.options);
  driver::CompiledModel model = driver::compile_model(arguments.model, prepared.options, arguments.measure);
  if (arguments.measure) {
    tell_branches(driver::branch_guess(*model.plan, prepared.inputs));
    constexpr double kSeconds = 1;
    driver::measure(model, settings.target.cpu.threads, prepared.inputs, arguments.seed, kSeconds, settings.device);
  }
  if (!arguments.svg.empty()) write_file(arguments.svg, driver::draw_svg(model, modules_of(arguments)), Sync::kNo);
  if (arguments.json) {
    print_json(json_of(model.report));
    return 0;
  }
  if (!arguments.kernels.empty()) {
    print_kernels(KernelTexts(model, settings.target), arguments.kernels);
    return 0;
  }
  print_report(model, settings.target, arguments.verbose);
  if (!arguments.svg.empty()) print_line("picture: " + arguments.svg);
  return 0;
}

}  // namespace heddle::cli
