#pragma once

namespace heddle {

// Seconds since an arbitrary moment, for differences. wall_seconds() is of a clock that never goes back.
// thread_seconds() and process_seconds() are the processor time used by this thread and by all threads of this process.
// They exclude time that other processes take away, but include the time of threads that wait by spinning.
double wall_seconds();
double thread_seconds();
double process_seconds();

}  // namespace heddle
