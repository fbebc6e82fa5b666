#pragma once

#include <signal.h>
#include <time.h>

#include <cstdint>

// The common parts of the thread samplers (code/sampler.h, program/sampler.h).
namespace heddle::profile {

// Returns a real-time signal that the process does not use; 0 if there is none. The samplers do not use SIGPROF, which
// programs with their own sampling profiler use.
int free_real_time_signal();

// Returns the program counter of an interrupted thread. `context` is the third argument of the signal handler.
uint64_t program_counter_of(const void* context);

// Starts a timer on `clock` that sends `signal` with `value` to a thread of this process every `period` nanoseconds.
// Returns false and sets errno on failure: EINVAL or ESRCH means that the thread has ended.
bool start_thread_timer(int thread, clockid_t clock, int signal, sigval value, int64_t period, timer_t* timer);

}  // namespace heddle::profile
