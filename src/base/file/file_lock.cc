#include "base/file/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include "base/thread/cancel.h"

namespace heddle {
namespace {

// The holder writes its number into the file. Seen from another namespace of processes it means nothing; then there is
// no such process, or one that is not stopped.
bool is_holder_stopped(int fd) {
  char text[32] = {};
  if (::pread(fd, text, sizeof text - 1, 0) <= 0) return false;
  std::ifstream status(fmt::format("/proc/{}/stat", std::strtol(text, nullptr, 10)));
  std::string line;
  std::getline(status, line);
  const size_t name_end = line.rfind(") ");  // the name may have spaces and brackets
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  const char state = line[name_end + 2];
  return state == 'T' || state == 't';
}

}  // namespace

FileLock::FileLock(std::string path) : path_(std::move(path)) {
  constexpr auto kShortest = std::chrono::milliseconds(2), kLongest = std::chrono::milliseconds(50);
  for (auto pause = kShortest;;) {
    Descriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      if (!is_named(file.get(), path_)) continue;
      const std::string holder = std::to_string(::getpid());
      if (::ftruncate(file.get(), 0) == 0 && ::pwrite(file.get(), holder.data(), holder.size(), 0) < 0) {
        // Who waits then cannot see that this process is stopped.
      }
      file_ = std::move(file);
      return;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    waited_ = true;
    if (is_holder_stopped(file.get())) return;
    check_cancelled();
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongest);
  }
}

void FileLock::release() {
  if (file_.get() < 0) return;
  ::unlink(path_.c_str());
  file_ = Descriptor();
}

void sweep_locks(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const Descriptor file(::open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() < 0 || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (is_named(file.get(), entry.path())) ::unlink(entry.path().c_str());
  }
}

}  // namespace heddle
