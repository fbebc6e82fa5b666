#include "cli/usage.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/near_miss.h"

namespace heddle::cli {
namespace {

// The command that was named, the last one of `kernel gemm`.
const CLI::App& innermost(const CLI::App& app) {
  const auto named = app.get_subcommands();
  return named.empty() ? app : innermost(*named.front());
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// "--shape", "-o", ...
std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options([](const CLI::Option* o) { return !o->get_group().empty(); })) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string title_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : fmt::format("{} {}", title_of(*parent), command.get_name());
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string unknown_option(const CLI::App& app, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  const CLI::App& command = innermost(app);
  if (&command != &app && has(options_of(command), name)) {
    return fmt::format("{} stands before the command: write it behind \"{}\"", name, title_of(command));
  }
  const std::string meant = did_you_mean(name, options_of(command));
  return fmt::format("{} has no option {}{}", title_of(command), name,
                     meant.empty() ? "" : ". " + meant.substr(0, meant.size() - 1));
}

std::string unknown_command(const CLI::App& app, const std::string& argument) {
  const CLI::App& command = innermost(app);
  const std::vector<std::string> known = commands_of(command);
  if (known.empty()) {
    return fmt::format("{} has no use for the argument \"{}\". `{} --help` shows the usage", title_of(command),
                       argument, title_of(command));
  }
  for (const char* suffix : {".onnx", ".hir", ".plan"}) {
    if (!argument.ends_with(suffix)) continue;
    return fmt::format("\"{0}\" is no command. To run the model: {1} run {0}", argument, title_of(command));
  }
  return fmt::format("\"{}\" is no command. {}Commands: {}", argument, did_you_mean(argument, known),
                     fmt::join(known, ", "));
}

}  // namespace

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  // A misspelt option comes first: its value may have been taken for MODEL, or MODEL be missing for it.
  const std::vector<std::string> unused = app.remaining(true);
  for (const std::string& argument : unused) {
    if (argument.size() > 1 && argument[0] == '-') return unknown_option(app, argument);
  }
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !unused.empty();
  return extra ? unknown_command(app, unused.front()) : fmt::format("{}: {}", title_of(innermost(app)), error.what());
}

std::string no_command(const CLI::App& app) {
  const CLI::App& command = innermost(app);
  if (command.get_parent() == nullptr) return "a command is missing, for example: heddle run model.onnx";
  return fmt::format("{} needs a command: {}", title_of(command), fmt::join(commands_of(command), ", "));
}

std::string usage_hint(const CLI::App& app) {
  return fmt::format("`{} --help` shows the usage", title_of(innermost(app)));
}

}  // namespace heddle::cli
