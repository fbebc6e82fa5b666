#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "heddle/error.h"

namespace heddle {

[[noreturn]] void internal_error(const char* file, int line, const char* condition, std::string message);

// Throws heddle::Error.
[[noreturn]] inline void fail(ErrorCode code, std::string where, std::string why, std::string remedy = {}) {
  throw Error(code, std::move(where), std::move(why), std::move(remedy));
}

}  // namespace heddle

// Checks an internal invariant of Heddle. If the check fails, the error message says that Heddle has a bug. Errors of
// the user are reported with fail() instead.
#define HEDDLE_CHECK(condition, ...)                                                           \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::heddle::internal_error(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
