#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "base/check.h"
#include "cli/command_tree.h"

namespace heddle::cli {
namespace {

using Words = std::vector<std::string>;

std::string joined(const Words& words, std::string_view separator = " ") {
  return fmt::format("{}", fmt::join(words, separator));
}

// "run" of "heddle run", "kernel gemm" of "heddle kernel gemm", "" of "heddle".
std::string below_root(const CommandInfo& command) {
  const size_t space = command.path.find(' ');
  return space == std::string::npos ? "" : command.path.substr(space + 1);
}

// `root` and all below it.
std::vector<const CommandInfo*> all_commands(const CommandInfo& root) {
  std::vector<const CommandInfo*> found = {&root};
  for (const CommandInfo& command : root.commands) {
    for (const CommandInfo* inner : all_commands(command)) found.push_back(inner);
  }
  return found;
}

Words names_of(const std::vector<CommandInfo>& commands) {
  Words names;
  for (const CommandInfo& command : commands) names.push_back(command.name);
  return names;
}

// A word in single quotes, for any of the shells. What they would have to escape is replaced: these are remarks.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' || c == '\\' ? '"' : c;
  return result + "'";
}

enum class Values : uint8_t { kNone, kChoices, kFiles, kFolders };

// NAME=FILE.npy is a file from its "=" on, as the shells see it.
Values values_of(const OptionInfo& option) {
  if (!option.choices.empty()) return Values::kChoices;
  if (option.value == "DIR") return Values::kFolders;
  return option.value == "FILE" || option.value == "TEXT" ? Values::kFiles : Values::kNone;
}

// What a shell says for the values of an option; that of choices takes their list.
struct ValueTexts {
  const char *none, *files, *folders;
  std::function<std::string(const std::string& choices)> choices;
};

std::string values_text(const OptionInfo& option, const ValueTexts& texts) {
  const Values values = values_of(option);
  if (values == Values::kChoices) return texts.choices(joined(option.choices));
  return values == Values::kNone ? texts.none : values == Values::kFiles ? texts.files : texts.folders;
}

// ---- bash ----

constexpr const char* kBashBegin = R"(# Completion of heddle for bash, made by `heddle completion bash`.
_heddle_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}
_heddle_paths() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}
_heddle() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} path='' word
  COMPREPLY=()
  # "=" is a word of its own.
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
    case ${path:+$path }$word in
)";

std::string bash_values(const OptionInfo& option) {
  return values_text(option, {"true", "_heddle_paths -f", "_heddle_paths -d",
                              [](const std::string& list) { return "_heddle_words " + shell_quoted(list); }});
}

std::string bash_command(const CommandInfo& command) {
  Words options;
  std::string values;
  std::string argument = "_heddle_words " + shell_quoted(joined(names_of(command.commands)));
  for (const OptionInfo& option : command.options) {
    if (option.positional) {
      argument = bash_values(option);
      continue;
    }
    options.insert(options.end(), option.names.begin(), option.names.end());
    if (option.value.empty()) continue;
    values += fmt::format("        {}) {}; return ;;\n", joined(option.names, " | "), bash_values(option));
  }
  std::string text = fmt::format("    {})\n", shell_quoted(below_root(command)));
  if (!values.empty()) text += fmt::format("      case $prev in\n{}      esac\n", values);
  return text + fmt::format(
                    "      if [[ $cur == -* ]]; then\n        _heddle_words {}\n      else\n        {}\n      fi\n"
                    "      ;;\n",
                    shell_quoted(joined(options)), argument);
}

std::string bash(const CommandInfo& root) {
  Words paths;
  for (const CommandInfo* command : all_commands(root)) {
    if (command != &root) paths.push_back(shell_quoted(below_root(*command)));
  }
  std::string script = kBashBegin;
  script +=
      fmt::format("      {}) path+=${{path:+ }}$word ;;\n    esac\n  done\n  case $path in\n", joined(paths, " | "));
  for (const CommandInfo* command : all_commands(root)) script += bash_command(*command);
  return script + "  esac\n}\ncomplete -F _heddle heddle\n";
}

// ---- zsh ----

// Inside of a specification, where brackets and colons mean something.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') result += '\\';
    result += c == '\'' || c == '`' ? '"' : c;
  }
  return result;
}

std::string zsh_values(const OptionInfo& option) {
  return values_text(option, {" ", "_files", "_files -/", [](const std::string& list) { return "(" + list + ")"; }});
}

std::string zsh_option(const OptionInfo& option) {
  const std::string value =
      option.value.empty() ? "" : fmt::format(":{}:{}", zsh_text(option.value), zsh_values(option));
  if (option.positional) return fmt::format("    '1:{}:{}'", option.names.front(), zsh_values(option));
  const std::string text = fmt::format("[{}]{}", zsh_text(option.text), value);
  // Where the value is: behind "=" or in the next word of a long option, at once or there of a short one.
  Words names;
  for (const std::string& name : option.names) {
    names.push_back(option.value.empty() ? name : name + (name.starts_with("--") ? "=" : "+"));
  }
  const std::string excluded = option.repeats ? "'*'" : fmt::format("'({})'", joined(option.names));
  if (names.size() == 1) return fmt::format("    {}{}'{}'", option.repeats ? "'*'" : "", names.front(), text);
  return fmt::format("    {}{{{}}}'{}'", excluded, joined(names, ","), text);
}

std::string zsh_function(const CommandInfo& command) {
  std::string name = "_" + command.path;
  std::replace(name.begin(), name.end(), ' ', '_');
  Words options;
  for (const OptionInfo& option : command.options) options.push_back(zsh_option(option));
  if (command.commands.empty()) {
    return fmt::format("{}() {{\n  _arguments -s \\\n{}\n}}\n", name, joined(options, " \\\n"));
  }
  std::string text;
  for (const CommandInfo& inner : command.commands) text += zsh_function(inner);
  std::string commands, cases;
  for (const CommandInfo& inner : command.commands) {
    commands += fmt::format("    '{}:{}'\n", inner.name, zsh_text(inner.text));
    cases += fmt::format("        {0}) {1}_{0} ;;\n", inner.name, name);
  }
  return text + fmt::format(R"({}() {{
  local curcontext=$curcontext state line
  local -a commands=(
{}  )
  _arguments -C -s \
{} \
    '1: :->command' '*:: :->arguments'
  case $state in
    command) _describe command commands ;;
    arguments)
      case $line[1] in
{}      esac
      ;;
  esac
}}
)",
                            name, commands, joined(options, " \\\n"), cases);
}

std::string zsh(const CommandInfo& root) {
  return "#compdef heddle\n# Completion of heddle for zsh, made by `heddle completion zsh`.\n" + zsh_function(root) +
         // Found by compinit, this file is the body of _heddle; sourced, it says what it completes.
         "if [[ $funcstack[1] == _heddle ]]; then _heddle \"$@\"; else compdef _heddle heddle; fi\n";
}

// ---- fish ----

constexpr const char* kFishBegin = R"(# Completion of heddle for fish, made by `heddle completion fish`.
function __heddle_at
    set -l path ''
    for word in (commandline -opc)[2..]
        set -l longer (string trim -- "$path $word")
        contains -- $longer $__heddle_commands; and set path $longer
    end
    test "$path" = "$argv[1]"
end
complete -c heddle -f
)";

std::string fish_values(const OptionInfo& option) {
  return values_text(option, {" -x", " -r -F", " -x -a '(__fish_complete_directories)'",
                              [](const std::string& list) { return " -x -a " + shell_quoted(list); }});
}

std::string fish_command(const CommandInfo& command) {
  const std::string line = fmt::format("complete -c heddle -n \"__heddle_at {}\"", shell_quoted(below_root(command)));
  std::string text;
  for (const CommandInfo& inner : command.commands) {
    text += fmt::format("{} -a {} -d {}\n", line, inner.name, shell_quoted(inner.text));
  }
  for (const OptionInfo& option : command.options) {
    if (option.positional) {
      text += values_of(option) == Values::kChoices
                  ? fmt::format("{} -a {}\n", line, shell_quoted(joined(option.choices)))
                  : fmt::format("{} -F\n", line);
      continue;
    }
    text += line;
    for (const std::string& name : option.names) {
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    text += fmt::format("{} -d {}\n", option.value.empty() ? "" : fish_values(option), shell_quoted(option.text));
  }
  return text;
}

std::string fish(const CommandInfo& root) {
  Words paths;
  std::string commands;
  for (const CommandInfo* command : all_commands(root)) {
    if (command != &root) paths.push_back(shell_quoted(below_root(*command)));
    commands += fish_command(*command);
  }
  return kFishBegin + fmt::format("set -g __heddle_commands {}\n", joined(paths)) + commands;
}

}  // namespace

std::string completion_script(const CommandInfo& root, std::string_view shell) {
  if (shell == "bash") return bash(root);
  if (shell == "zsh") return zsh(root);
  HEDDLE_CHECK(shell == "fish");
  return fish(root);
}

}  // namespace heddle::cli
