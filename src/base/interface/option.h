#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/tensor.h"

namespace heddle {

// The interface whose options the messages of this process name. Programs other than the command and Python use the
// library.
enum class Interface : uint8_t { kLibrary, kCommandLine, kPython };
void speak_of(Interface interface);

// How a user gives an option, for remedies: "--shape x=1,8", `shapes={"x": (1, 8)}`, `shapes["x"] = {1, 8}` of
// CompileOptions. Messages outside of the command's own folder name options by these functions only.
namespace option {

using NamedShape = std::pair<std::string, Shape>;

std::string shape();  // without a value
std::string shape(const std::vector<NamedShape>& shapes);
std::string shape_of(std::string_view input);  // of a shape that only the user knows
std::string target(std::string_view value);
std::string precision(std::string_view value);
std::string threads();
std::string threads(int count);
std::string tuned();  // with what the tuner found
// The call or the command that tunes a model with these options.
std::string tune(const std::vector<std::string>& options);
// The further sections of an explanation, each with the words that request it.
std::vector<std::string> explain_more(bool is_measured);
std::string value_of(std::string_view input);  // known at compile time
std::string input(std::string_view name);      // of a run
std::string limit(std::string_view name);
std::string external_data_links();

}  // namespace option
}  // namespace heddle
