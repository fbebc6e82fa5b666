// `heddle inspect`: what a model file is and what running it would need.
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file/file.h"
#include "base/printable.h"
#include "cli/commands/reports.h"
#include "cli/support.h"
#include "driver/model/kernel_times.h"

namespace heddle::cli {
namespace {

using driver::DeclaredPort;
using driver::ModelSummary;
using driver::RunEstimate;

std::vector<std::pair<std::string, size_t>> by_count(const ModelSummary& summary) {
  std::vector<std::pair<std::string, size_t>> operators(summary.operators.begin(), summary.operators.end());
  std::stable_sort(operators.begin(), operators.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return operators;
}

// "25.6 million"
std::string human_count(int64_t count) {
  const auto value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.2f} billion", value * 1e-9);
  if (value >= 1e6) return fmt::format("{:.1f} million", value * 1e-6);
  return fmt::format("{}", count);
}

std::string bytes_text(int64_t bytes) {
  return human_bytes(static_cast<double>(bytes));
}

// The shape that holds for a port in the estimate, where it says more than what the model declares.
std::string chosen_shape(const std::vector<PortInfo>& ports, const DeclaredPort& declared) {
  for (const PortInfo& port : ports) {
    if (port.name == declared.name) return to_string(port.shape);
  }
  return "-";
}

// "f(height, width)" in place of a long formula of an extent: the symbols are what a reader looks for.
std::string short_extent(const std::string& extent) {
  constexpr size_t kLong = 24;
  if (columns(extent) <= kLong) return extent;
  std::vector<std::string> symbols;
  for (size_t at = 0; at < extent.size();) {
    const auto is_letter = [&](size_t i) {
      return std::isalnum(static_cast<unsigned char>(extent[i])) || extent[i] == '_';
    };
    size_t end = at;
    while (end < extent.size() && is_letter(end)) ++end;
    const bool is_symbol = end > at && !std::isdigit(static_cast<unsigned char>(extent[at])) &&
                           (end == extent.size() || extent[end] != '(');
    const std::string word = extent.substr(at, end - at);
    if (is_symbol && std::find(symbols.begin(), symbols.end(), word) == symbols.end()) symbols.push_back(word);
    at = std::max(end, at + 1);
  }
  return fmt::format("f({})", fmt::join(symbols, ", "));
}

// `full`: with the formulas of extents as they are.
std::string type_of(const DeclaredPort& port, bool full) {
  const size_t shape = port.type.find('[');
  if (full || !port.extents || shape == std::string::npos) return port.type;
  std::vector<std::string> extents;
  for (const std::string& extent : *port.extents) extents.push_back(short_extent(extent));
  return fmt::format("{}[{}]", port.type.substr(0, shape), fmt::join(extents, ","));
}

void print_ports(const ModelSummary& summary, bool full) {
  const bool planned = summary.estimate.has_value();
  Table table(planned ? std::vector<std::string>{"", "name", "type", "planned for"}
                      : std::vector<std::string>{"", "name", "type"});
  const auto add = [&](const char* what, const DeclaredPort& port, const std::vector<PortInfo>* chosen) {
    std::vector<std::string> row = {what, port.name, type_of(port, full)};
    if (chosen != nullptr) row.push_back(chosen_shape(*chosen, port));
    table.add(std::move(row));
  };
  for (const DeclaredPort& port : summary.inputs) add("input", port, planned ? &summary.estimate->inputs : nullptr);
  // Models of IR version 3 have a default for each of their weights.
  constexpr size_t kMostOptional = 8;
  const bool lists = summary.ir_version > 3 || summary.optional_inputs.size() <= kMostOptional;
  for (const DeclaredPort& port : summary.optional_inputs) {
    if (lists) add("optional", port, planned ? &summary.estimate->inputs : nullptr);
  }
  for (const DeclaredPort& port : summary.outputs) add("output", port, planned ? &summary.estimate->outputs : nullptr);
  table.print(full ? 0 : output_columns());
  if (!lists)
    print_line(fmt::format("optional inputs: {}, each with a weight for its default", summary.optional_inputs.size()));
}

std::string format_text(const ModelSummary& summary) {
  std::string text =
      fmt::format("{}: {}, {}", summary.path, summary.format, human_bytes(static_cast<double>(summary.file_bytes)));
  if (summary.external_bytes > 0) text += fmt::format(" and {} of external data", bytes_text(summary.external_bytes));
  if (summary.ir_version > 0) text += fmt::format(", IR version {}", summary.ir_version);
  for (const auto& [domain, version] : summary.opsets) text += fmt::format(", {} {}", domain, version);
  return text;
}

// Constant nodes are counted apart from operators. `full` prints the operators that do not fit the line, too.
void print_operators(const ModelSummary& summary, bool full) {
  constexpr size_t kBeside = 45;  // columns: the title, and what follows the names
  const size_t most = full ? std::string::npos : std::max(output_columns(), 2 * kBeside) - kBeside;
  size_t constants = 0, hidden = 0;
  std::string text;
  for (const auto& [name, count] : by_count(summary)) {
    if (name == "Constant" || name == "constant") {
      constants = count;
    } else if (const std::string item = fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
               hidden > 0 || (!text.empty() && columns(text) + columns(item) > most)) {
      ++hidden;
    } else {
      text += item;
    }
  }
  std::string rest = hidden > 0 ? fmt::format(", {} more (--full)", hidden) : "";
  if (constants > 0) rest += fmt::format(", and {} constants", constants);
  print_line(fmt::format("operators: {}: {}{}", summary.nodes - constants, text, rest));
}

void print_estimate(const RunEstimate& e) {
  const int64_t all = e.constant_bytes + e.arena_bytes + e.port_bytes;
  print_line(fmt::format("memory: {}: weights {}, intermediate values {}, inputs and outputs {}", bytes_text(all),
                         bytes_text(e.constant_bytes), bytes_text(e.arena_bytes), bytes_text(e.port_bytes)));
  print_line(fmt::format("floor: one run takes at least {} on {}, in {} kernels", human_seconds(e.floor_seconds),
                         driver::machine_of(e.target), e.kernels));
}

nlohmann::json json_of(const std::vector<DeclaredPort>& ports, const std::vector<PortInfo>* chosen) {
  nlohmann::json all = nlohmann::json::array();
  for (const DeclaredPort& port : ports) {
    nlohmann::json one = {{"name", port.name}, {"type", port.type}};
    if (port.extents) one["extents"] = *port.extents;
    for (size_t i = 0; chosen != nullptr && i < chosen->size(); ++i) {
      if ((*chosen)[i].name == port.name) one["shape"] = (*chosen)[i].shape;
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

void print_report(const ModelSummary& summary, bool full) {
  print_line(format_text(summary));
  print_ports(summary, full);
  if (summary.nodes > 0) print_operators(summary, full);
  if (summary.parameter_tensors > 0) {
    print_line(fmt::format("parameters: {} in {} tensors, {}", human_count(summary.parameters),
                           summary.parameter_tensors, bytes_text(summary.parameter_bytes)));
  }
  for (const std::string& remark : summary.remarks) print_line("note: " + remark);
  if (summary.estimate) print_estimate(*summary.estimate);
  if (!summary.unsupported.empty()) print_line("not supported:", Style::kBad);
  for (const std::string& what : summary.unsupported) print_line("  " + what);
  if (!summary.no_estimate.empty()) {
    print_line("a run with these options is refused: " + summary.no_estimate, Style::kBad);
  }
}

nlohmann::json json_of(const ModelSummary& s) {
  const std::vector<PortInfo>* inputs = s.estimate ? &s.estimate->inputs : nullptr;
  const std::vector<PortInfo>* outputs = s.estimate ? &s.estimate->outputs : nullptr;
  nlohmann::json opsets = nlohmann::json::object();
  for (const auto& [domain, version] : s.opsets) opsets[domain] = version;
  nlohmann::json all = {{"model", s.path},
                        {"format", s.format},
                        {"file_bytes", s.file_bytes},
                        {"external_bytes", s.external_bytes},
                        {"ir_version", s.ir_version},
                        {"opsets", std::move(opsets)},
                        {"inputs", json_of(s.inputs, inputs)},
                        {"optional_inputs", json_of(s.optional_inputs, inputs)},
                        {"outputs", json_of(s.outputs, outputs)},
                        {"nodes", s.nodes},
                        {"operators", s.operators},
                        {"parameters", s.parameters},
                        {"parameter_tensors", s.parameter_tensors},
                        {"parameter_bytes", s.parameter_bytes},
                        {"unsupported", s.unsupported},
                        {"remarks", s.remarks},
                        {"no_estimate", s.no_estimate},
                        {"exit_code", s.exit_code}};
  if (s.estimate) {
    all["estimate"] = {{"constant_bytes", s.estimate->constant_bytes}, {"arena_bytes", s.estimate->arena_bytes},
                       {"port_bytes", s.estimate->port_bytes},         {"kernels", s.estimate->kernels},
                       {"floor_s", s.estimate->floor_seconds},         {"target", s.estimate->target}};
  }
  return all;
}

int inspect_command(const Arguments& arguments) {
  const Prepared prepared = prepare(arguments);
  const ModelSummary summary = driver::inspect_model(arguments.model, prepared.options);
  if (!arguments.svg.empty()) {
    write_file(arguments.svg, driver::draw_model_svg(arguments.model, prepared.options, modules_of(arguments)),
               Sync::kNo);
  }
  if (arguments.json) {
    print_json(json_of(summary));
  } else {
    print_report(summary, arguments.full);
    if (!arguments.svg.empty()) print_line("picture: " + arguments.svg);
  }
  return summary.exit_code;
}

}  // namespace heddle::cli
