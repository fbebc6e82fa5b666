#include "base/log.h"

#include <algorithm>
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

// $HEDDLE_LOG is a level, topics, or both: "info,stages".
bool asks_for(std::string_view word) {
  const char* text = std::getenv("HEDDLE_LOG");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    if (rest.substr(0, end) == word) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

LogLevel threshold() {
  if (asks_for("debug")) return LogLevel::kDebug;
  if (asks_for("info")) return LogLevel::kInfo;
  if (asks_for("off")) return LogLevel::kOff;
  return LogLevel::kWarning;
}

const char* prefix(LogLevel level) {
  return level == LogLevel::kWarning ? "warning" : level == LogLevel::kInfo ? "info" : "debug";
}

void hand_on(LogLevel level, std::string_view from, std::string_view message, bool asked_for) {
  LogSink sink;
  {
    const std::lock_guard lock(state().mutex);
    sink = state().sink;
  }
  if (sink) return sink(level, message);
  if (!asked_for) return;
  std::fprintf(stderr, "heddle: %s: %s\n", std::string(from).c_str(), printable(message, Lines::kMany).c_str());
}

}  // namespace

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(state().mutex);
  state().sink = std::move(sink);
}

void log(LogLevel level, std::string_view message) {
  static const LogLevel least = threshold();
  hand_on(level, prefix(level), message, level >= least);
}

bool logs(std::string_view topic) {
  return asks_for(topic);
}

void log(std::string_view topic, std::string_view message) {
  hand_on(LogLevel::kInfo, topic, message, logs(topic));
}

void warn_once(std::string_view message) {
  {
    const std::lock_guard lock(state().mutex);
    if (!state().warned.emplace(message).second) return;
  }
  log(LogLevel::kWarning, message);
}

}  // namespace heddle
