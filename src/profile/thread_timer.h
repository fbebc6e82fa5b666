#pragma once

#include <signal.h>
#include <time.h>

#include <cstdint>

// What the samplers of threads (code/sampler.h, program/sampler.h) are made of.
namespace heddle::profile {

// A signal of real time that the process has no use for; 0: there is none. SIGPROF is left to programs that sample
// themselves.
int free_real_time_signal();

// Of what a signal's handler was given as its third argument: where the thread was.
uint64_t program_counter_of(const void* context);

// A timer that sends `signal` with `value` to a thread of this process, each `period` nanoseconds of a clock. False,
// with errno, where there is none: EINVAL or ESRCH where the thread has ended.
bool start_thread_timer(int thread, clockid_t clock, int signal, sigval value, int64_t period, timer_t* timer);

}  // namespace heddle::profile
