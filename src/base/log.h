#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace heddle {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kOff };

// Where the library's remarks go. By default to stderr from $HEDDLE_LOG (debug, info, warning, off; default warning)
// upwards; never to stdout. A sink gets every message of every level. Thread-safe.
using LogSink = std::function<void(LogLevel, std::string_view)>;
void set_log_sink(LogSink sink);  // empty: the default again

void log(LogLevel level, std::string_view message);
// What whoever works on the compiler asks for by its topic, beside a level or alone: HEDDLE_LOG=info,stages. kInfo.
bool logs(std::string_view topic);
void log(std::string_view topic, std::string_view message);
// Like log(kWarning), but each text once per process.
void warn_once(std::string_view message);

}  // namespace heddle
