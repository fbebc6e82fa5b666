#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace heddle {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kOff };

// The destination of the library's messages. By default, messages from the level $HEDDLE_LOG (debug, info, warning,
// off; default warning) upwards go to stderr, never to stdout. A sink gets every message of every level. Thread-safe.
using LogSink = std::function<void(LogLevel, std::string_view)>;
void set_log_sink(LogSink sink);  // empty: the default again

void log(LogLevel level, std::string_view message);
// True if $HEDDLE_LOG names `topic`, beside a level or alone: HEDDLE_LOG=info,stages. Topics are for developers of the
// compiler; their level is kInfo.
bool logs(std::string_view topic);
void log(std::string_view topic, std::string_view message);
// Like log(kWarning), but each text once per process.
void warn_once(std::string_view message);

}  // namespace heddle
