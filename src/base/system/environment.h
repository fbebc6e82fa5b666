#pragma once

#include <cstdint>
#include <optional>

namespace heddle {

// $NAME as a number; nothing where it is unset or empty. Throws kInvalidArgument where it is no number, or lies outside
// of [low, high].
std::optional<int64_t> integer_in_environment(const char* name, int64_t low, int64_t high);
std::optional<double> number_in_environment(const char* name, double low, double high);

}  // namespace heddle
