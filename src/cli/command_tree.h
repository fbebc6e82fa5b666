#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace heddle::cli {

// The options and commands of the command line, read from the parser. The manual and the completions are generated from
// them.
struct OptionInfo {
  std::vector<std::string> names;  // "-o", "--output"; one without dashes if it is positional
  bool positional = false;
  bool repeats = false;
  std::string value;                 // "FILE", "INT", ...; "" for a flag
  std::vector<std::string> choices;  // its values, if this list is complete or nearly so
  std::string fallback;              // its default, if that can be stated
  std::string text;

  bool operator==(const OptionInfo&) const = default;
};

struct CommandInfo {
  std::string path;  // "heddle", "heddle run", "heddle kernel gemm"
  std::string name;  // the last word of `path`
  std::string text;
  std::vector<OptionInfo> options;  // in the order of the help
  std::vector<CommandInfo> commands;
};

CommandInfo describe(const CLI::App& app, const std::string& parent = "");

// All commands below `root` that can be called, in order.
std::vector<const CommandInfo*> leaves(const CommandInfo& root);

// The manual page heddle(1) in roff. `notes` is the footer of the help: exit codes and variables.
std::string manual_page(const CommandInfo& root, std::string_view notes);

// Completions for "bash", "zsh" or "fish".
std::string completion_script(const CommandInfo& root, std::string_view shell);

}  // namespace heddle::cli
