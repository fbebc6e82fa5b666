#include "cli/signals.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>

#include "base/file/file.h"
#include "base/thread/thread.h"
#include "jit/process.h"

namespace heddle::cli {
namespace {
std::atomic<int> child = 0;
}  // namespace

void leave_signals_to(int process) {
  child = process;
}

// A thread that waits for signals may do what a signal handler may not.
void clean_up_on_signals() {
  sigset_t watched;
  sigemptyset(&watched);
  bool any = false;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    // What the caller ignores (nohup, a shell's background job) stays ignored.
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    sigaddset(&watched, number);
    any = true;
  }
  if (!any || ::pthread_sigmask(SIG_BLOCK, &watched, nullptr) != 0) return;
  start_thread("heddle", [watched] {
    int number = 0;
    for (;;) {
      if (::sigwait(&watched, &number) != 0) return;
      const int process = child;
      if (process == 0) break;
      if (number != SIGINT) ::kill(process, number);
    }
    jit::end_processes();
    remove_temporary_folders();
    ::signal(number, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    ::raise(number);
  }).detach();
}

}  // namespace heddle::cli
