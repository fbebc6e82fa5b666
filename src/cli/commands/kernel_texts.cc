#include "cli/commands/kernel_texts.h"

#include <algorithm>

#include "base/check.h"
#include "base/file/file.h"
#include "base/printable.h"
#include "cli/support.h"
#include "codegen/naming.h"
#include "codegen/text/writer.h"
#include "driver/compile/kernel_file.h"
#include "driver/options/options.h"
#include "runtime/plan_io.h"
#include "schedule/region/stitch.h"

namespace heddle::cli {
namespace {

using driver::GroupReport;
using driver::KernelReport;
using driver::OperandReport;

// Lines of a comment under titles of one width.
class Header {
 public:
  // What is too long goes on below, up to a few lines.
  void line(std::string_view title, const std::string& text) {
    constexpr size_t kColumns = 104, kLines = 4;
    std::string rest = printable(text);
    for (size_t i = 1; i < kLines && columns(rest) > kColumns; ++i) {
      const size_t space = rest.rfind(' ', kColumns);
      if (space == std::string::npos || space == 0) break;
      add(title, rest.substr(0, space));
      rest.erase(0, space + 1);
      title = "";
    }
    add(title, clipped(rest, kColumns));
  }
  std::string take() { return std::move(text_); }

 private:
  void add(std::string_view title, std::string_view text) {
    text_ += codegen::comment_of(fmt::format("{:10} {}", title, text)) + "\n";
  }
  std::string text_;
};

// The blocks and threads of one function of a kernel.
std::string launch_text(const CudaLaunch& launch) {
  std::string text =
      fmt::format("{}x{}x{} blocks of {} threads", launch.grid[0], launch.grid[1], launch.grid[2], launch.block);
  if (launch.cluster > 1) text += fmt::format(" in clusters of {}", launch.cluster);
  if (launch.shared_bytes > 0) text += ", shared " + human_bytes(launch.shared_bytes);
  return text;
}

std::string operand_text(const OperandReport& operand, const std::string& name) {
  std::string text = fmt::format("{} {}{}", name, to_string(operand.dtype), to_string(operand.shape));
  if (!operand.packing.empty()) text += " as " + operand.packing;
  if (operand.constant) text += ", constant";
  if (!operand.name.empty()) text += fmt::format(", {} {}", operand.output ? "of" : "from", operand.name);
  return text;
}

void add_operands(Header& header, const KernelReport& kernel, const std::vector<std::string>& names) {
  constexpr size_t kShown = 24;
  const size_t shown = std::min(kShown, kernel.operands.size());
  for (size_t i = 0; i < shown; ++i) header.line(i == 0 ? "operands" : "", operand_text(kernel.operands[i], names[i]));
  if (shown < kernel.operands.size()) header.line("", fmt::format("and {} more", kernel.operands.size() - shown));
}

void add_plan(Header& header, const KernelReport& kernel, const std::string& symbol) {
  if (kernel.launches.empty()) header.line("threads", fmt::format("cut into {} tasks", kernel.tasks));
  for (const CudaLaunch& launch : kernel.launches) {
    if (launch.symbol == symbol || launch.symbol.starts_with(symbol + "_")) header.line("launch", launch_text(launch));
  }
  if (!kernel.stitch.mapping.empty()) header.line("mapping", kernel.stitch.mapping);
  const char* title = "schemes";
  for (const schedule::SchemeChoice& choice : kernel.stitch.schemes) {
    header.line(title, fmt::format("{}: {}, {}", choice.value, to_string(choice.scheme), choice.reason));
    title = "";
  }
  if (!kernel.config.empty()) header.line("config", kernel.config);
  if (!kernel.reason.empty() && kernel.reason != kernel.stitch.mapping) header.line("because", kernel.reason);
  const char* of = kernel.launches.empty() ? " on one thread" : "";
  const std::string floor = fmt::format("floor {}{}", human_seconds(kernel.floor_seconds), of);
  const bool predicts = kernel.stitch.predicted_seconds > 0;
  header.line("time", predicts ? human_seconds(kernel.stitch.predicted_seconds) + " predicted, " + floor : floor);
}

// What the first kernel of a text calls its operands, where people read it.
codegen::Naming naming_of(const KernelReport& kernel) {
  std::vector<codegen::NamedOperand> operands;
  for (const OperandReport& operand : kernel.operands) operands.push_back({operand.name, operand.output});
  return {kernel.symbol, codegen::identifiers_of(operands)};
}

// Those that its text has in any case.
std::vector<std::string> plain_names(const KernelReport& kernel) {
  std::vector<std::string> names;
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    names.push_back(fmt::format("{}{}", kernel.operands[i].output ? 'y' : 'x', i));
  }
  return names;
}

}  // namespace

std::string grid_text(const KernelReport& kernel) {
  if (kernel.launches.empty()) return fmt::format("{} tasks", kernel.tasks);
  std::string text;
  for (const CudaLaunch& launch : kernel.launches) text += (text.empty() ? "" : "; then ") + launch_text(launch);
  return text;
}

KernelTexts::KernelTexts(const driver::CompiledModel& model, const Target& target) : model_(model), target_(target) {
  for (size_t group = 0; group < model.report.groups.size(); ++group) {
    for (const KernelReport& kernel : model.report.groups[group].kernels) {
      for (const std::string& symbol : kernel.texts) {
        if (numbers_.emplace(symbol, symbols_.size() + 1).second) symbols_.push_back(symbol);
        uses_[symbol].push_back({group, &kernel});
      }
    }
  }
}

std::string KernelTexts::file_name(size_t number) const {
  return driver::kernel_file_name(symbol(number), target_);
}

std::string KernelTexts::numbers_of(const KernelReport& kernel) const {
  std::vector<size_t> numbers;
  for (const std::string& symbol : kernel.texts) numbers.push_back(numbers_.at(symbol));
  return fmt::format("{}", fmt::join(numbers, ", "));
}

std::string KernelTexts::comment(const std::string& symbol, const std::vector<std::string>& names) const {
  constexpr size_t kShown = 8;
  const std::vector<Use>& uses = uses_.at(symbol);
  const KernelReport& first = *uses.front().kernel;
  const GroupReport& group = model_.report.groups[uses.front().group];
  Header header;
  header.line("kernel", first.label);
  if (symbol != first.texts.front()) header.line("part of", first.texts.front());
  if (!group.origins.empty()) header.line("computes", group.origins);
  add_operands(header, first, names);
  add_plan(header, first, symbol);
  if (uses.size() == 1) return header.take();
  std::vector<std::string> places;
  for (size_t i = 0; i < std::min(kShown, uses.size()); ++i) {
    const std::string& names = model_.report.groups[uses[i].group].origins;
    places.push_back(fmt::format("#{} {}", uses[i].group, names.substr(0, names.find(", "))));
  }
  if (uses.size() > kShown) places.push_back(fmt::format("and {} more", uses.size() - kShown));
  header.line("used", fmt::format("{} times: {}", uses.size(), fmt::join(places, ", ")));
  return header.take();
}

std::string KernelTexts::file(size_t number) const {
  const KernelReport& first = *uses_.at(symbol(number)).front().kernel;
  codegen::KernelText text = model_.kernels.text_of(symbol(number));
  std::vector<std::string> names = plain_names(first);
  if (symbol(number) == first.symbol && !first.has_arguments) {
    codegen::Naming naming = naming_of(first);
    if (auto named = codegen::emit_named(schedule::plan_kernel(first.desc, first.configuration, target_), naming)) {
      text.text = *std::move(named);
      names = std::move(naming.operands);
    }
  }
  return driver::kernel_file(text, comment(symbol(number), names));
}

void emit_kernels(const std::string& model, const CompileOptions& options, const std::string& folder) {
  if (runtime::is_plan_file(model)) {
    fail(ErrorCode::kInvalidArgument, model, "a plan has machine code and no texts",
         "Name the model that it was made of");
  }
  const Target target = driver::resolve(options).target;
  const driver::CompiledModel compiled = driver::compile_model(model, options, false, false);
  const KernelTexts texts(compiled, target);
  make_directories(folder);
  for (size_t n = 1; n <= texts.size(); ++n) {
    const std::string path = folder + "/" + texts.file_name(n);
    if (!file_exists(path) || driver::is_unedited(MappedFile::read(path)->text())) continue;
    fail(ErrorCode::kFile, path, "it was edited, or Heddle did not write it, and would be overwritten",
         "Remove it, or name another folder");
  }
  for (size_t n = 1; n <= texts.size(); ++n) {
    write_file(folder + "/" + texts.file_name(n), texts.file(n), Sync::kNo);
  }
  print_line(fmt::format("{}: the texts of {} kernels", folder, texts.size()));
}

}  // namespace heddle::cli
