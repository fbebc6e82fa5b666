#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace heddle {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kOff };

// Receives the library's log messages. By default, messages go to stderr, never to stdout, if their level is at least
// that of $HEDDLE_LOG (debug, info, warning or off; default: warning). A custom sink gets every message of every level.
// Thread-safe.
using LogSink = std::function<void(LogLevel, std::string_view)>;
void set_log_sink(LogSink sink);  // an empty sink restores the default

void log(LogLevel level, std::string_view message);
// True if $HEDDLE_LOG contains `topic`, alone or after a level: HEDDLE_LOG=info,stages. Topics are for developers of
// the compiler. Messages of a topic have the level kInfo.
bool logs(std::string_view topic);
void log(std::string_view topic, std::string_view message);
// Logs a warning. Each text is logged only once per process.
void warn_once(std::string_view message);

}  // namespace heddle
