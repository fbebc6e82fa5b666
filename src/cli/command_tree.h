#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace heddle::cli {

// The commands and options of the command line, as read from the parser. The manual page and the shell completions are
// generated from this description.
struct OptionInfo {
  std::vector<std::string> names;  // "-o", "--output"; a positional option has a single name without dashes
  bool positional = false;
  bool repeats = false;
  std::string value;                 // "FILE", "INT", ...; "" for a flag
  std::vector<std::string> choices;  // the valid values; empty unless the list is complete or nearly so
  std::string fallback;              // text of the default value; "" if there is none to show
  std::string text;

  bool operator==(const OptionInfo&) const = default;
};

struct CommandInfo {
  std::string path;  // "heddle", "heddle run", "heddle kernel gemm"
  std::string name;  // the last word of `path`
  std::string text;
  std::vector<OptionInfo> options;  // in the order of the help text
  std::vector<CommandInfo> commands;
};

CommandInfo describe(const CLI::App& app, const std::string& parent = "");

// Returns all commands under `root` that can be called, in order.
std::vector<const CommandInfo*> leaves(const CommandInfo& root);

// Returns the manual page heddle(1) in roff format. `notes` is the footer of the help text: exit codes and environment
// variables.
std::string manual_page(const CommandInfo& root, std::string_view notes);

// Returns the completion script for `shell`: "bash", "zsh" or "fish".
std::string completion_script(const CommandInfo& root, std::string_view shell);

}  // namespace heddle::cli
