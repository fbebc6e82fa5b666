#include "cli/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

namespace heddle::cli {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// The parser describes a value by its type and what checks it: "TEXT", "INT:INT in [2 - 1000]", "TEXT:{info,clear}",
// or by what app.cc calls it: "FILE", "cpu|cuda|cuda:N".
void read_type(const std::string& type, OptionInfo& option) {
  const size_t open = type.find('{');
  if (open != std::string::npos) option.choices = split(type.substr(open + 1, type.find('}') - open - 1), ',');
  if (type.find('|') != std::string::npos) {
    option.choices = split(type, '|');
    option.value = type;
    // A pattern is no value.
    std::erase_if(option.choices, [](const std::string& choice) { return choice.find(':') != std::string::npos; });
  } else {
    option.value = type.find("FILE") != std::string::npos ? "FILE" : type.substr(0, type.find(':'));
  }
}

OptionInfo option_info(const CLI::Option& option) {
  OptionInfo info;
  info.positional = option.get_positional();
  if (info.positional) info.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  info.repeats = option.get_items_expected_max() > 1;
  if (option.get_items_expected_max() > 0) read_type(option.get_type_name(), info);
  info.fallback = option.get_default_str();
  info.text = option.get_description();
  return info;
}

}  // namespace

CommandInfo describe(const CLI::App& app, const std::string& parent) {
  CommandInfo info;
  info.name = app.get_name();
  info.path = parent.empty() ? info.name : parent + " " + info.name;
  info.text = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) info.options.push_back(option_info(*option));  // else it is a former name
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    info.commands.push_back(describe(*command, info.path));
  }
  return info;
}

std::vector<const CommandInfo*> leaves(const CommandInfo& root) {
  if (root.commands.empty()) return {&root};
  std::vector<const CommandInfo*> found;
  // What takes arguments of its own can be called without a further word.
  const auto is_positional = [](const OptionInfo& option) { return option.positional; };
  if (std::any_of(root.options.begin(), root.options.end(), is_positional)) found.push_back(&root);
  for (const CommandInfo& command : root.commands) {
    for (const CommandInfo* leaf : leaves(command)) found.push_back(leaf);
  }
  return found;
}

}  // namespace heddle::cli
