#include "base/file/descriptor.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>

#include "base/file/file_error.h"

namespace heddle {

void fail_errno(const std::string& path, const char* action, int error, std::string remedy) {
  throw FileError(path, fmt::format("{} failed: {}", action, std::strerror(error)), error, std::move(remedy));
}

bool is_named(int fd, const std::string& path) {
  struct stat open_status {
  }, named{};
  return ::fstat(fd, &open_status) == 0 && ::lstat(path.c_str(), &named) == 0 && open_status.st_ino == named.st_ino &&
         open_status.st_dev == named.st_dev;
}

}  // namespace heddle
