#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace heddle {

// How long runnable threads of this process have waited for a processor since construction. Times measured meanwhile
// are too long by that much, or by more if threads wait for one another.
class Contention {
 public:
  Contention();
  // The longest wait of any thread, as a share of the time since construction. 0 if the system does not count it.
  double waiting() const;

 private:
  std::map<std::string, int64_t> before_;  // nanoseconds of waiting, by thread
  double start_;
};

// True if the machine is too busy for meaningful measurements, by Contention::waiting().
bool is_busy(double waiting);

// A warning about times measured with this many threads; "" if the machine is not busy.
std::string busy_text(double waiting, int threads);

}  // namespace heddle
