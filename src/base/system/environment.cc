#include "base/system/environment.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "heddle/error.h"

namespace heddle {
namespace {

template <typename T>
std::optional<T> in_environment(const char* name, T low, T high, const char* kind) {
  const char* const set = std::getenv(name);
  const std::string_view text = set == nullptr ? "" : set;
  if (text.empty()) return std::nullopt;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // A NaN is not within the bounds either.
  if (error == std::errc() && end == text.data() + text.size() && value >= low && value <= high) return value;
  throw Error(ErrorCode::kInvalidArgument, name, fmt::format("\"{}\" is no {} from {} to {}", text, kind, low, high),
              "Set it to one, or unset it");
}

}  // namespace

std::optional<int64_t> integer_in_environment(const char* name, int64_t low, int64_t high) {
  return in_environment(name, low, high, "whole number");
}

std::optional<double> number_in_environment(const char* name, double low, double high) {
  return in_environment(name, low, high, "number");
}

}  // namespace heddle
