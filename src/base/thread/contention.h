#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace heddle {

// Measures how long runnable threads of this process have waited for a processor since construction. A time that was
// measured for a thread in this period includes the waits of that thread, and also waits of the threads that it depends
// on.
class Contention {
 public:
  Contention();
  // The longest wait of any thread, as a fraction of the time since construction. 0 if the system does not report
  // waits.
  double waiting() const;

 private:
  std::map<std::string, int64_t> before_;  // nanoseconds of waiting, by thread
  double start_;
};

// True if the machine is too busy for meaningful measurements. `waiting` is a result of Contention::waiting().
bool is_busy(double waiting);

// A warning about times that were measured with `threads` threads. "" if the machine is not busy.
std::string busy_text(double waiting, int threads);

}  // namespace heddle
