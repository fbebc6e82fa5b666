#pragma once

#include <unistd.h>

#include <string>
#include <utility>

namespace heddle {

// Owns a file descriptor and closes it on destruction. -1: no file.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const { return fd_; }
  // Returns the result of close(2): some file systems report a failed write only at that point.
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// Throws kFile with a message such as "opening the file failed: ...". `action` is the beginning, such as "opening the
// file". `error` is an errno value; its text is the end of the message.
[[noreturn]] void fail_errno(const std::string& path, const char* action, int error, std::string remedy = {});

// True if `path` still refers to the open file `fd`. False, for example, if another process has replaced or removed the
// file. A symbolic link at `path` is not followed.
bool is_named(int fd, const std::string& path);

}  // namespace heddle
