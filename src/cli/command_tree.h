#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace heddle::cli {

// What the command line takes, read off the parser: the manual and the completions are made of it.
struct OptionInfo {
  std::vector<std::string> names;  // "-o", "--output"; one without dashes if it is positional
  bool positional = false;
  bool repeats = false;
  std::string value;                 // "FILE", "INT", ...; "" of a flag
  std::vector<std::string> choices;  // its values, where these are all or nearly all
  std::string fallback;              // what it is where it is not given, if that can be said
  std::string text;

  bool operator==(const OptionInfo&) const = default;
};

struct CommandInfo {
  std::string path;  // "heddle", "heddle run", "heddle kernel gemm"
  std::string name;  // the last word of it
  std::string text;
  std::vector<OptionInfo> options;  // in the order of the help
  std::vector<CommandInfo> commands;
};

CommandInfo describe(const CLI::App& app, const std::string& parent = "");

// Every command below `root` that can be called, in order.
std::vector<const CommandInfo*> leaves(const CommandInfo& root);

// The manual page heddle(1) in roff. `notes` is the footer of the help: exit codes and variables.
std::string manual_page(const CommandInfo& root, std::string_view notes);

// Completions for "bash", "zsh" or "fish".
std::string completion_script(const CommandInfo& root, std::string_view shell);

}  // namespace heddle::cli
