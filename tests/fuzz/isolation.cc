#include "tests/fuzz/isolation.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

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

// Reads lines until the child closes its end. False: the time is over.
bool read_lines(int descriptor, const std::function<void(const std::string&)>& line, int seconds) {
  std::string pending;
  auto last = std::chrono::steady_clock::now();
  for (;;) {
    pollfd entry{descriptor, POLLIN, 0};
    const auto waited = std::chrono::steady_clock::now() - last;
    const auto left = std::chrono::seconds(seconds) - waited;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
    if (ms <= 0) return false;
    const int ready = poll(&entry, 1, static_cast<int>(ms));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char buffer[4096];
    const ssize_t count = read(descriptor, buffer, sizeof buffer);
    if (count <= 0) return true;
    pending.append(buffer, static_cast<size_t>(count));
    for (size_t end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
      line(pending.substr(0, end));
      pending.erase(0, end + 1);
      last = std::chrono::steady_clock::now();
    }
  }
}

}  // namespace

std::string run_isolated(const std::function<void(const std::function<void(const std::string&)>&)>& work,
                         const std::function<void(const std::string&)>& line, int seconds) {
  int ends[2];
  if (pipe(ends) != 0) return fmt::format("error: pipe: {}", std::strerror(errno));
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return fmt::format("error: fork: {}", std::strerror(errno));
  if (child == 0) {
    close(ends[0]);
    work([&](const std::string& text) { send_line(ends[1], text); });
    _exit(0);
  }
  close(ends[1]);
  const bool finished = read_lines(ends[0], line, seconds);
  close(ends[0]);
  if (!finished) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!finished) return fmt::format("hang: nothing for {} s", seconds);
  if (WIFSIGNALED(status)) return fmt::format("crash: signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) return fmt::format("crash: exit code {}", WEXITSTATUS(status));
  return {};
}

}  // namespace heddle::fuzz
