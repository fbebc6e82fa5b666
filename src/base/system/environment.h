#pragma once

#include <cstdint>
#include <optional>

namespace heddle {

// The environment variable `name` as a number; nullopt if it is unset or empty. Throws kInvalidArgument if it is not a
// number or is outside [low, high].
std::optional<int64_t> integer_in_environment(const char* name, int64_t low, int64_t high);
std::optional<double> number_in_environment(const char* name, double low, double high);

}  // namespace heddle
