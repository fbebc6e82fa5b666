#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace heddle::cli {

// The error message for a command line that did not parse. For a misspelt command or option, it suggests the most
// similar name.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

// The error message for a command line that names no command, or only the first word of a two-word command.
std::string no_command(const CLI::App& app);

// A line that says how to get help: "`heddle run --help` shows the usage".
std::string usage_hint(const CLI::App& app);

}  // namespace heddle::cli
