#pragma once

#include <cstdint>

namespace heddle::emulator {

// Faults to inject, from HEDDLE_EMULATED_CUPTI: words separated by commas, read when a tool subscribes.
struct Faults {
  bool held = false;      // "held": another tool is subscribed (39)
  bool denied = false;    // "denied": no permission (35)
  bool old = false;       // "old": records of CUPTI 12
  bool late = false;      // "late": buffers are delivered only at a forced flush
  bool nameless = false;  // "nameless": nodes of graphs have no numbers
  bool cut = false;       // "cut": the end of each buffer is missing
  uint64_t lost = 0;      // "lost:N": every N-th record is lost
  uint64_t zero = 0;      // "zero:N": every N-th record has no times
  uint64_t unknown = 0;   // "unknown:N": a record of an unknown kind precedes every N-th record

  static Faults now();
};

}  // namespace heddle::emulator
