#include "tests/fuzz/attack/isolation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

namespace heddle::fuzz {
namespace {

void send_line(int descriptor, std::string text) {
  for (char& c : text) {
    if (c == '\n') c = '\t';
  }
  text.push_back('\n');
  for (size_t at = 0; at < text.size();) {
    const ssize_t count = write(descriptor, text.data() + at, text.size() - at);
    if (count <= 0) _exit(3);
    at += static_cast<size_t>(count);
  }
}

void redirect(int descriptor, const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(3);
}

}  // namespace

Child::Child(const std::function<void(const SendLine&)>& work, const std::string& log) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(fmt::format("pipe: {}", std::strerror(errno)));
  std::fflush(stdout);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);
    close(ends[0]);
    if (!log.empty()) {
      redirect(STDERR_FILENO, log);
      redirect(STDOUT_FILENO, log + ".out");
    }
    work([&](const std::string& text) { send_line(ends[1], text); });
    std::fflush(stdout);
    _exit(0);
  }
  close(ends[1]);
  descriptor_ = ends[0];
}

Child::~Child() {
  if (pid_ > 0) {
    kill();
    wait();
  }
  close(descriptor_);
}

bool Child::receive(const std::function<void(const std::string&)>& line) {
  char buffer[4096];
  const ssize_t count = read(descriptor_, buffer, sizeof buffer);
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  pending_.append(buffer, static_cast<size_t>(count));
  for (size_t end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n')) {
    line(pending_.substr(0, end));
    pending_.erase(0, end + 1);
  }
  return true;
}

double Child::cpu_seconds() const {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void Child::kill() {
  ::kill(pid_, SIGKILL);
}

std::string Child::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) return fmt::format("crash: signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) return fmt::format("crash: exit code {}", WEXITSTATUS(status));
  return {};
}

std::string run_isolated(const std::function<void(const SendLine&)>& work,
                         const std::function<void(const std::string&)>& line, int seconds) {
  Child child(work);
  auto last = std::chrono::steady_clock::now();
  const auto note = [&](const std::string& text) {
    line(text);
    last = std::chrono::steady_clock::now();
  };
  for (;;) {
    const auto left = std::chrono::seconds(seconds) - (std::chrono::steady_clock::now() - last);
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
    pollfd entry{child.descriptor(), POLLIN, 0};
    const int ready = ms <= 0 ? 0 : poll(&entry, 1, static_cast<int>(ms));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      child.kill();
      child.wait();
      return fmt::format("hang: nothing for {} s", seconds);
    }
    if (!child.receive(note)) return child.wait();
  }
}

}  // namespace heddle::fuzz
