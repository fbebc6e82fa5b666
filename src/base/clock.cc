#include "base/clock.h"

#include <time.h>

namespace heddle {
namespace {

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

double wall_seconds() {
  return seconds_of(CLOCK_MONOTONIC);
}
double thread_seconds() {
  return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}
double process_seconds() {
  return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

}  // namespace heddle
