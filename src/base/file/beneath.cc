#include "base/file/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace heddle {
namespace {

// A pipe without a writer would be waited for without O_NONBLOCK.
constexpr int kRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;

// Takes the first component off `path`.
std::string_view next_component(std::string_view& path) {
  const size_t end = std::min(path.find('/'), path.size());
  const std::string_view component = path.substr(0, end);
  path.remove_prefix(std::min(end + 1, path.size()));
  return component;
}

bool leads_out(std::string_view relative) {
  if (relative.empty() || relative.front() == '/' || relative.find('\0') != std::string_view::npos) return true;
  while (!relative.empty()) {
    if (next_component(relative) == "..") return true;
  }
  return false;
}

int open_folder(const std::string& folder, Descriptor& out) {
  out = Descriptor(::open(folder.empty() ? "." : folder.c_str(), kFolder));
  return out.get() < 0 ? errno : 0;
}

// Opens one component; a link there is ELOOP, whatever the flags made of it.
int open_component(int folder, const std::string& name, int flags, Descriptor& out) {
  out = Descriptor(::openat(folder, name.c_str(), flags | O_NOFOLLOW));
  if (out.get() >= 0) return 0;
  const int error = errno;
  struct stat status {};
  const bool link = ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
  return link ? ELOOP : error;
}

}  // namespace

int open_beneath_by_components(const std::string& folder, std::string_view relative, Descriptor& file) {
  if (leads_out(relative)) return EXDEV;
  Descriptor at;
  if (const int error = open_folder(folder, at)) return error;
  while (!relative.empty()) {
    const std::string name(next_component(relative));
    if (name.empty() || name == ".") continue;
    Descriptor next;
    if (const int error = open_component(at.get(), name, relative.empty() ? kRead : kFolder, next)) return error;
    at = std::move(next);
  }
  file = std::move(at);
  return 0;
}

int open_beneath(const std::string& folder, std::string_view relative, Descriptor& file) {
  if (leads_out(relative)) return EXDEV;
  Descriptor at;
  if (const int error = open_folder(folder, at)) return error;
  struct open_how how {};
  how.flags = kRead;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const std::string name(relative);
  const auto fd = static_cast<int>(::syscall(SYS_openat2, at.get(), name.c_str(), &how, sizeof how));
  if (fd >= 0) {
    file = Descriptor(fd);
    return 0;
  }
  // Filters of system calls answer EPERM; EAGAIN is a folder that was renamed meanwhile.
  const bool retry = errno == ENOSYS || errno == EPERM || errno == EINVAL || errno == EAGAIN;
  return retry ? open_beneath_by_components(folder, relative, file) : errno;
}

}  // namespace heddle
