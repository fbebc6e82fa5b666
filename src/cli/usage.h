#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace heddle::cli {

// The error of a command line that did not parse, with the command or option that was most likely meant.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

// The error of a command line that names no command, or only the first word of one.
std::string no_command(const CLI::App& app);

// How to learn more.
std::string usage_hint(const CLI::App& app);

}  // namespace heddle::cli
