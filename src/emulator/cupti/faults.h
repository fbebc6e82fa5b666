#pragma once

#include <cstdint>

namespace heddle::emulator {

// What HEDDLE_EMULATED_CUPTI says goes wrong: words with commas between, read when somebody subscribes.
struct Faults {
  bool held = false;      // "held": another tool has the place (39)
  bool denied = false;    // "denied": no permission (35)
  bool old = false;       // "old": records of CUPTI 12
  bool late = false;      // "late": buffers come at a forced flush only
  bool nameless = false;  // "nameless": nodes of graphs have no numbers
  bool cut = false;       // "cut": the end of each buffer is missing
  uint64_t lost = 0;      // "lost:N": every N-th record is
  uint64_t zero = 0;      // "zero:N": every N-th record has no times
  uint64_t unknown = 0;   // "unknown:N": before every N-th record there is one of a kind that nobody knows

  static Faults now();
};

}  // namespace heddle::emulator
