#include "jit/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/file/file.h"
#include "base/thread/cancel.h"
#include "base/thread/thread.h"

extern char** environ;

namespace heddle::jit {
namespace {

constexpr size_t kMaxOutput = 64 << 10;

struct FileActions {
  posix_spawn_file_actions_t actions;
  FileActions() { posix_spawn_file_actions_init(&actions); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
};

// Programs get all signals, also where this process has blocked some to take them on a thread of their own.
struct Attributes {
  posix_spawnattr_t attributes;
  Attributes() {
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
};

struct Running {
  std::mutex mutex;
  std::set<pid_t> children;
  bool ending = false;
};

Running& running() {
  static auto* instance = new Running;
  return *instance;
}

[[noreturn]] void wait_for_end() {
  for (;;) ::pause();
}

// A terminal sends these signals to this process as well.
bool is_for_all(int signal) {
  return signal == SIGINT || signal == SIGHUP || signal == SIGTERM;
}

// True if end_processes() was called, or, if that `may_follow`, is called within a moment: Ctrl-C may kill a compiler
// before this process sees the signal.
bool is_ending(bool may_follow) {
  constexpr auto kMoment = std::chrono::milliseconds(300), kStep = std::chrono::milliseconds(5);
  for (auto waited = std::chrono::milliseconds(0);; waited += kStep) {
    {
      const std::lock_guard lock(running().mutex);
      if (running().ending) return true;
    }
    if (!may_follow || waited >= kMoment) return false;
    std::this_thread::sleep_for(kStep);
  }
}

// The children of a process, in /proc.
std::vector<pid_t> children_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", process));
  return {std::istream_iterator<pid_t>(file), std::istream_iterator<pid_t>()};
}

// Ending a compiler's driver leaves the compiler itself running. The numbers of children are not reused before their
// parent has ended.
void end_tree(pid_t process) {
  for (const pid_t child : children_of(process)) end_tree(child);
  ::kill(process, SIGTERM);
}

// Waits for a child to exit without reaping it, and kills it if this work is cancelled.
void watch(pid_t child) {
  constexpr int kPause = 50;  // milliseconds
  Cancellation* const cancellation = Cancellation::current();
  if (cancellation == nullptr) return;
  const Descriptor file(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (file.get() < 0) return;  // an old kernel
  pollfd ended{file.get(), POLLIN, 0};
  while (::poll(&ended, 1, kPause) <= 0) {
    if (cancellation->is_cancelled()) return end_tree(child);
  }
}

int wait_for(pid_t child) {
  watch(child);
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  {
    // Its number may be another's as soon as it has been waited for.
    const std::lock_guard lock(running().mutex);
    running().children.erase(child);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  if (is_ending(WIFSIGNALED(status) && is_for_all(WTERMSIG(status)))) wait_for_end();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// 0, or the errno of what failed.
int start(pid_t& child, char** argv, char** environment, const FileActions& files) {
  const Attributes attributes;
  std::unique_lock lock(running().mutex);
  if (running().ending) {
    lock.unlock();
    wait_for_end();
  }
  const int error = posix_spawn(&child, argv[0], &files.actions, &attributes.attributes, argv, environment);
  if (error == 0) running().children.insert(child);
  return error;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& scratch) {
  check_cancelled();
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // Messages in English whatever the user's locale, so that reports can be read by others. Temporary files
  // lie beside `scratch`, so that they are deleted together with it if the program is killed.
  std::string locale = "LC_ALL=C", temporary = "TMPDIR=" + scratch.substr(0, scratch.rfind('/'));
  std::vector<char*> environment = {locale.data(), temporary.data()};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "LC_ALL=", 7) != 0 && std::strncmp(*entry, "TMPDIR=", 7) != 0) {
      environment.push_back(*entry);
    }
  }
  environment.push_back(nullptr);

  FileActions files;
  posix_spawn_file_actions_addopen(&files.actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files.actions, 1, scratch.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files.actions, 1, 2);
  pid_t child = 0;
  const int error = start(child, argv.data(), environment.data(), files);
  if (error != 0) {
    const bool is_limit = error == EAGAIN || error == ENOMEM;
    fail(is_limit ? ErrorCode::kOutOfMemory : ErrorCode::kFile, arguments[0],
         fmt::format("starting it failed: {}", std::strerror(error)), is_limit ? kMoreProcesses : "");
  }
  ProcessResult result;
  result.status = wait_for(child);
  check_cancelled();
  if (file_exists(scratch)) result.output = MappedFile::read(scratch)->text().substr(0, kMaxOutput);
  return result;
}

void end_processes() {
  const std::lock_guard lock(running().mutex);
  running().ending = true;
  for (const pid_t child : running().children) end_tree(child);
}

}  // namespace heddle::jit
