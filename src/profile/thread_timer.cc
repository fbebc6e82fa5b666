#include "profile/thread_timer.h"

#include <ucontext.h>

#include <cerrno>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace heddle::profile {

int free_real_time_signal() {
  for (int number = SIGRTMAX - 1; number > SIGRTMIN; --number) {
    struct sigaction now {};
    const bool known = ::sigaction(number, nullptr, &now) == 0;
    if (known && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) return number;
  }
  return 0;
}

uint64_t program_counter_of(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uint64_t>(machine.gregs[REG_RIP]);
#else
  return static_cast<uint64_t>(machine.pc);
#endif
}

bool start_thread_timer(int thread, clockid_t clock, int signal, sigval value, int64_t period, timer_t* timer) {
  constexpr int64_t kSecond = 1'000'000'000;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event.sigev_value = value;
  event.sigev_notify_thread_id = thread;
  if (::timer_create(clock, &event, timer) != 0) return false;
  const timespec each = {static_cast<time_t>(period / kSecond), static_cast<long>(period % kSecond)};
  const itimerspec times = {each, each};
  if (::timer_settime(*timer, 0, &times, nullptr) == 0) return true;
  const int error = errno;
  ::timer_delete(*timer);
  errno = error;
  return false;
}

}  // namespace heddle::profile
