#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/tensor.h"

namespace heddle {

// The interface whose option names appear in the messages of this process. kLibrary is the interface of all programs
// other than the command-line tool and Python.
enum class Interface : uint8_t { kLibrary, kCommandLine, kPython };
void speak_of(Interface interface);

// Each function returns an option as the user of the current interface writes it, for the advice in error messages:
// "--shape x=1,8", `shapes={"x": (1, 8)}`, or `shapes["x"] = {1, 8}` of CompileOptions. Messages outside src/cli must
// use these functions to name options.
namespace option {

using NamedShape = std::pair<std::string, Shape>;

std::string shape();  // the option's name, without a value
std::string shape(const std::vector<NamedShape>& shapes);
std::string shape_of(std::string_view input);  // with a placeholder, for a shape that only the user knows
std::string target(std::string_view value);
std::string precision(std::string_view value);
std::string threads();
std::string threads(int count);
std::string tuned();  // compile with the configurations that the tuner found
// The call or command that tunes a model with these options.
std::string tune(const std::vector<std::string>& options);
// The further sections that `explain` can print, each with the option that requests it.
std::vector<std::string> explain_more(bool is_measured);
std::string value_of(std::string_view input);  // the value of an input, known at compile time
std::string input(std::string_view name);      // the value of an input, for a run
std::string limit(std::string_view name);
std::string external_data_links();

}  // namespace option
}  // namespace heddle
