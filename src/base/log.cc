#include "base/log.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "base/printable.h"

namespace heddle {
namespace {

struct State {
  std::mutex mutex;
  LogSink sink;
  std::set<std::string, std::less<>> warned;
};

State& state() {
  static State instance;
  return instance;
}

LogLevel threshold() {
  const char* text = std::getenv("HEDDLE_LOG");
  const std::string_view level = text == nullptr ? "" : text;
  if (level == "debug") return LogLevel::kDebug;
  if (level == "info") return LogLevel::kInfo;
  if (level == "off") return LogLevel::kOff;
  return LogLevel::kWarning;
}

const char* prefix(LogLevel level) {
  return level == LogLevel::kWarning ? "warning" : level == LogLevel::kInfo ? "info" : "debug";
}

}  // namespace

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(state().mutex);
  state().sink = std::move(sink);
}

void log(LogLevel level, std::string_view message) {
  LogSink sink;
  {
    const std::lock_guard lock(state().mutex);
    sink = state().sink;
  }
  if (sink) {
    sink(level, message);
    return;
  }
  static const LogLevel least = threshold();
  if (level < least) return;
  std::fprintf(stderr, "heddle: %s: %s\n", prefix(level), printable(message, Lines::kMany).c_str());
}

void warn_once(std::string_view message) {
  {
    const std::lock_guard lock(state().mutex);
    if (!state().warned.emplace(message).second) return;
  }
  log(LogLevel::kWarning, message);
}

}  // namespace heddle
