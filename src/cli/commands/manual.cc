#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cli/command_tree.h"
#include "heddle/version.h"

namespace heddle::cli {
namespace {

// Text as roff prints it. Hyphens of options stay hyphens that can be copied and searched for; what stands between
// backticks is bold.
std::string roff(std::string_view text, bool is_code = false) {
  std::string result;
  bool bold = false;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '`') {
      bold = !bold;
      result += bold ? "\\fB" : "\\fR";
    } else if (c == '-' && (is_code || bold)) {
      result += "\\-";
    } else {
      result += c;
    }
  }
  // A line that begins with one of these is a request.
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string bold(std::string_view text) {
  return "\\fB" + roff(text, true) + "\\fR";
}

// Of what is found in several commands, the name that tells it best.
std::string long_name(const OptionInfo& option) {
  return option.names.back();
}

std::string synopsis(const CommandInfo& command) {
  std::string line = bold(command.path);
  for (const OptionInfo& option : command.options) {
    if (option.positional) line += fmt::format(" \\fI{}\\fR", option.names.front());
  }
  return line + " [\\fIOPTION\\fR]...";
}

std::string entry(const OptionInfo& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += (names.empty() ? "" : ", ") + (option.positional ? fmt::format("\\fI{}\\fR", name) : bold(name));
  }
  if (!option.positional && !option.value.empty()) names += fmt::format(" \\fI{}\\fR", roff(option.value, true));
  std::string text = roff(option.text);
  if (!option.fallback.empty()) text += fmt::format(" (default: {})", roff(option.fallback, true));
  return fmt::format(".TP\n{}\n{}\n", names, text);
}

bool is_help(const OptionInfo& option) {
  return option.names.back() == "--help";
}

// Options that mean the same in several commands are told once.
std::vector<OptionInfo> shared_options(const std::vector<const CommandInfo*>& commands) {
  std::vector<OptionInfo> seen, shared;
  const auto has = [](const auto& list, const OptionInfo& option) {
    return std::find(list.begin(), list.end(), option) != list.end();
  };
  for (const CommandInfo* command : commands) {
    for (const OptionInfo& option : command->options) {
      if (has(seen, option) && !has(shared, option)) shared.push_back(option);
      seen.push_back(option);
    }
  }
  return shared;
}

std::string command_section(const CommandInfo& command, const std::vector<OptionInfo>& shared) {
  std::string text =
      fmt::format(".SS {}\n{}.\n.PP\n{}\n", roff(command.path, true), roff(command.text), synopsis(command));
  std::string others;
  for (const OptionInfo& option : command.options) {
    if (is_help(option)) continue;
    if (std::find(shared.begin(), shared.end(), option) == shared.end()) {
      text += entry(option);
    } else if (!option.positional) {
      others += (others.empty() ? "" : ", ") + bold(long_name(option));
    }
  }
  if (!others.empty()) text += fmt::format(".PP\nShared options: {}.\n", others);
  return text;
}

// The footer has paragraphs, and tables of a name and what it means, indented by two spaces.
std::string notes_section(std::string_view notes) {
  std::string text;
  std::istringstream lines{std::string(notes)};
  for (std::string line; std::getline(lines, line);) {
    const size_t gap = line.find("   ", 2);
    if (line.starts_with("  ") && gap != std::string::npos) {
      text += fmt::format(".TP\n{}\n{}\n", bold(std::string_view(line).substr(2, gap - 2)),
                          roff(std::string_view(line).substr(line.find_first_not_of(' ', gap))));
    } else {
      text += ".PP\n" + roff(line) + "\n";
    }
  }
  return text;
}

constexpr const char* kExamples = R"(.nf
heddle run model.onnx \-\-input x=x.npy \-\-output\-dir out
heddle bench model.onnx \-\-threads 2
heddle explain model.onnx \-\-svg model.svg
heddle compile model.onnx \-o model.plan
.fi
)";

}  // namespace

std::string manual_page(const CommandInfo& root, std::string_view notes) {
  const std::vector<const CommandInfo*> commands = leaves(root);
  const std::vector<OptionInfo> shared = shared_options(commands);
  std::string page = fmt::format(".TH HEDDLE 1 \"\" \"heddle {}\" \"User Commands\"\n", version());
  page += ".SH NAME\nheddle \\- compile and run deep-learning models\n";
  page += fmt::format(".SH SYNOPSIS\n{} \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...\n", bold(root.name));
  page += fmt::format(
      ".SH DESCRIPTION\n{}. It takes a trained model (ONNX) and makes fused kernels for the CPU or GPU of "
      "this machine.\n",
      roff(root.text));
  for (const OptionInfo& option : root.options) page += entry(option);
  page += ".SH COMMANDS\n";
  for (const CommandInfo* command : commands) page += command_section(*command, shared);
  page += ".SH SHARED OPTIONS\n";
  for (const OptionInfo& option : shared) {
    if (!is_help(option)) page += entry(option);
  }
  return page + ".SH NOTES\n" + notes_section(notes) + ".SH EXAMPLES\n" + kExamples;
}

}  // namespace heddle::cli
