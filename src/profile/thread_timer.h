#pragma once

#include <signal.h>
#include <time.h>

#include <cstdint>

// Common parts of the thread samplers (code/sampler.h, program/sampler.h).
namespace heddle::profile {

// A real-time signal that the process does not use; 0: none. SIGPROF is left to programs that sample themselves.
int free_real_time_signal();

// The program counter of a thread, from the third argument of its signal handler.
uint64_t program_counter_of(const void* context);

// Starts a timer that sends `signal` with `value` to a thread of this process every `period` nanoseconds of a clock.
// Returns false, with errno, if that fails: EINVAL or ESRCH if the thread has ended.
bool start_thread_timer(int thread, clockid_t clock, int signal, sigval value, int64_t period, timer_t* timer);

}  // namespace heddle::profile
