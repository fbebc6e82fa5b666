#pragma once

namespace heddle {

// Seconds from some moment on, for differences: of a clock that never goes back; of processor time that this thread, or
// this process with all of its threads, has used. Time that other processes take away is not in the latter; that of
// threads that wait by spinning is.
double wall_seconds();
double thread_seconds();
double process_seconds();

}  // namespace heddle
