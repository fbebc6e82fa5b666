#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace heddle {

// How long threads of this process that were ready to run waited for a processor, from the construction on. Times that
// were measured meanwhile are too long by that or, where threads wait for one another, by more.
class Contention {
 public:
  Contention();
  // Of the time since then: the share that the thread that waited longest has waited. 0 if the system does not count
  // it.
  double waiting() const;

 private:
  std::map<std::string, int64_t> before_;  // nanoseconds of waiting, by thread
  double start_;
};

// Whether the machine is too busy for times to say anything of a program, by Contention::waiting().
bool is_busy(double waiting);

// What to say of times of a run of so many threads then; "" if the machine is not busy.
std::string busy_text(double waiting, int threads);

}  // namespace heddle
