#pragma once

#include <cstdint>

namespace heddle::emulator {

// Faults that the emulated CUPTI injects. They are comma-separated words in the environment variable
// HEDDLE_EMULATED_CUPTI, which is read when a tool subscribes. A number in parentheses is the CUPTI error code.
struct Faults {
  bool held = false;      // "held": another tool is already subscribed (39)
  bool denied = false;    // "denied": no permission (35)
  bool old = false;       // "old": records have the format of CUPTI 12
  bool late = false;      // "late": buffers are delivered only at a forced flush
  bool nameless = false;  // "nameless": graph nodes have no ids
  bool cut = false;       // "cut": the end of each buffer is missing
  uint64_t lost = 0;      // "lost:N": every N-th record is lost
  uint64_t zero = 0;      // "zero:N": every N-th record has zero timestamps
  uint64_t unknown = 0;   // "unknown:N": a record of an unknown kind precedes every N-th record

  static Faults now();
};

}  // namespace heddle::emulator
