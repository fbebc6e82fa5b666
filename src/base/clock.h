#pragma once

namespace heddle {

// Seconds since an arbitrary moment; only differences are meaningful. wall_seconds() reads a clock that never goes
// back. thread_seconds() returns the processor time that this thread has used, and process_seconds() that of all
// threads of this process. Processor time excludes the time used by other processes, but includes the time that threads
// spend spinning.
double wall_seconds();
double thread_seconds();
double process_seconds();

}  // namespace heddle
