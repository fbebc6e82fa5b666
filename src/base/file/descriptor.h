#pragma once

#include <unistd.h>

#include <string>
#include <utility>

namespace heddle {

// An open file that is closed at the end; -1: none.
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
  // Some file systems report a failed write only here.
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// Throws kFile: "opening the file failed: ...", with the text of errno `error`.
[[noreturn]] void fail_errno(const std::string& path, const char* action, int error, std::string remedy = {});

// True if `path` still names the open file `fd`. Others may have replaced or removed it. Links are not followed.
bool is_named(int fd, const std::string& path);

}  // namespace heddle
