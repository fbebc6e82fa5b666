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

// What others, or other commands, call what an option of ours is for.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"--dims", "--shape"},     {"--batch", "--shape"},    {"--batch-size", "--shape"}, {"--size", "--shape"},
    {"--device", "--target"},  {"--gpu", "--target"},     {"--cuda", "--target"},      {"--dtype", "--precision"},
    {"--fp16", "--precision"}, {"--bf16", "--precision"}, {"--time", "--seconds"},
};

// The option of `known` that is meant. The hyphens in front make no two words alike.
std::string meant_option(const std::string& name, const std::vector<std::string>& known) {
  for (const auto& [other, ours] : kSynonyms) {
    if (name == other && has(known, std::string(ours))) return std::string(ours);
  }
  if (!name.starts_with("--")) return "";
  std::vector<std::string_view> words;
  for (const std::string& option : known) {
    if (option.starts_with("--")) words.push_back(std::string_view(option).substr(2));
  }
  const std::string_view near = near_miss(std::string_view(name).substr(2), words);
  return near.empty() ? "" : "--" + std::string(near);
}

std::string unknown_option(const CLI::App& app, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  const CLI::App& command = innermost(app);
  if (&command != &app && has(options_of(command), name)) {
    return fmt::format("{} stands before the command: write it behind \"{}\"", name, title_of(command));
  }
  const std::string no_option = fmt::format("{} has no option {}", title_of(command), name);
  std::vector<std::string> others;  // commands that have it
  for (const CLI::App* other : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (has(options_of(*other), name)) others.push_back(title_of(*other));
  }
  if (!others.empty()) return fmt::format("{}; those that have it: {}", no_option, fmt::join(others, ", "));
  const std::string meant = meant_option(name, options_of(command));
  return meant.empty() ? no_option : fmt::format("{}. Did you mean {}?", no_option, meant);
}

// "--html: 1 required FILE missing", as CLI11 says it.
std::string missing_value(const std::string& text) {
  constexpr std::string_view kRequired = ": 1 required ", kMissing = " missing";
  const size_t at = text.find(kRequired);
  if (at == std::string::npos || !text.ends_with(kMissing)) return text;
  const size_t from = at + kRequired.size();
  return fmt::format("{} needs {}", text.substr(0, at), text.substr(from, text.size() - kMissing.size() - from));
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
  if (!unused.empty() && app.get_subcommands().empty() && has({"generate", "transcribe"}, unused.front())) {
    return fmt::format(
        "\"{0}\" is a command of the Python package: `pip install '.[text]'` in a clone, then "
        "`python3 -m heddle {0}`",
        unused.front());
  }
  for (const std::string& argument : unused) {
    if (argument.size() > 1 && argument[0] == '-') return unknown_option(app, argument);
  }
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !unused.empty();
  return extra ? unknown_command(app, unused.front())
               : fmt::format("{}: {}", title_of(innermost(app)), missing_value(error.what()));
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
