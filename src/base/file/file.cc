#include "base/file/file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/file/file_parts.h"
#include "base/file/space.h"

namespace heddle {
namespace {

constexpr const char* kFolderRemedy = "Name a folder that exists or can be made, on a disk that may be written";

constexpr std::string_view kAside = ".tmp";  // what names of unfinished files end with
constexpr size_t kMostWritten = 1 << 30;     // one call writes at most 2 GiB

// 0, or the errno of what failed.
int write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), std::min(bytes.size(), kMostWritten));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return 0;
}

int write_all_at(int fd, uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(fd, bytes.data(), std::min(bytes.size(), kMostWritten), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return 0;
}

// Devices and pipes are written to: a file in their place would destroy them.
bool is_special(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

// The file behind a symbolic link, so that the link stays.
std::string behind_links(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::string target = std::filesystem::canonical(path, error);
  return error ? path : target;
}

// A name in the same folder that no other process or thread uses.
std::string aside_name(const std::string& path) {
  static std::atomic<uint64_t> counter = 0;
  return fmt::format("{}.{}.{}{}", path, ::getpid(), counter.fetch_add(1), kAside);
}

// Whether a name is what aside_name() makes of `name`, or of any name where that is empty.
bool is_aside_of(const std::string& name, const std::string& other) {
  if (!other.ends_with(kAside) || !other.starts_with(name)) return false;
  const std::string_view numbers =
      std::string_view(other).substr(name.size(), other.size() - name.size() - kAside.size());
  return name.empty() || (numbers.starts_with('.') && numbers.find_first_not_of(".0123456789") == numbers.npos);
}

void check_written(const std::string& path, int error) {
  if (error != 0) fail_errno(path, "writing the file", error, error == ENOSPC ? "Make room on the disk" : "");
}

// Removes files aside in a folder that nobody writes, of the file `name` or of all.
void sweep_asides(const std::string& folder, const std::string& name) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!is_aside_of(name, entry.path().filename())) continue;
    const Descriptor file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
  }
}

// A new file for what is to take the place of `target`. Without a name, where the file system and /proc allow that:
// nothing of it stays when the process dies. Else under the name `aside`, which a lock says to be in use.
class NewFile {
 public:
  NewFile(std::string target, const std::string& path)
      : target_(std::move(target)), aside_(aside_name(target_)), folder_(folder_of(target_)) {
    if (::access("/proc/self/fd", X_OK) == 0) {
      file_ = Descriptor(::open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644));
    }
    named_ = file_.get() < 0;
    if (named_) file_ = Descriptor(::open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (file_.get() < 0)
      fail_errno(path, "creating the file", errno, "Check that the folder exists and may be written");
    lock_ = Descriptor(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
    ::flock(lock_.get(), LOCK_EX | LOCK_NB);
  }
  ~NewFile() {
    if (named_) ::unlink(aside_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int fd() const { return file_.get(); }

  // 0, or the errno of what failed.
  int take_place(Sync sync) {
    if (sync == Sync::kYes && ::fsync(file_.get()) != 0) return errno;
    const std::string open = fmt::format("/proc/self/fd/{}", lock_.get());
    if (file_.close() != 0) return errno;
    if (!named_) {
      const auto link = [&](const std::string& name) {
        return ::linkat(AT_FDCWD, open.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
      };
      if (link(target_)) return flush_folder(sync);
      if (errno != EEXIST) return errno;
      sweep_asides(folder_, std::filesystem::path(target_).filename());  // of who died here
      // Signals wait, since the name aside would stay.
      const auto lock = hold_temporary_folders();
      if (!link(aside_)) return errno;
      if (::rename(aside_.c_str(), target_.c_str()) != 0) {
        const int error = errno;
        ::unlink(aside_.c_str());
        return error;
      }
    } else {
      if (::rename(aside_.c_str(), target_.c_str()) != 0) return errno;
      named_ = false;
    }
    return flush_folder(sync);
  }

 private:
  static std::string folder_of(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path();
    return folder.empty() ? "." : folder;
  }
  // The name of the file, which a file system may write later than its content.
  int flush_folder(Sync sync) const {
    if (sync == Sync::kNo) return 0;
    const Descriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() >= 0) ::fsync(folder.get());  // some file systems cannot
    return 0;
  }

  std::string target_, aside_, folder_;
  Descriptor file_, lock_;
  bool named_ = false;
};

// Gives fill(fd) a new file, which then takes the place of `path`.
template <typename Fill>
void replace_file(const std::string& path, Sync sync, const Fill& fill) {
  NewFile file(behind_links(path), path);
  fill(file.fd());
  check_written(path, file.take_place(sync));
}

// Bytes of a file to another one, within the system where that can do it.
int copy_bytes(int from, int to, uint64_t bytes) {
  while (bytes > 0) {
    ssize_t copied = ::copy_file_range(from, nullptr, to, nullptr, std::min<uint64_t>(bytes, kMostWritten), 0);
    if (copied < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
      std::vector<std::byte> buffer(std::min<uint64_t>(bytes, 1 << 20));
      copied = ::read(from, buffer.data(), buffer.size());
      if (copied > 0) {
        if (const int error = write_all(to, std::span(buffer).first(static_cast<size_t>(copied)))) return error;
      }
    }
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0) return errno;
    if (copied == 0) return EIO;  // it became shorter
    bytes -= static_cast<uint64_t>(copied);
  }
  return 0;
}

}  // namespace

namespace {

// 0 for a folder, else the errno that says why it is not one.
int why_no_folder(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return errno;
  return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
}

}  // namespace

bool file_exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

void make_directories(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string prefix = path.substr(0, at);
    if (::mkdir(prefix.c_str(), 0700) == 0 || errno == EEXIST) continue;
    const int error = errno;
    if (why_no_folder(prefix) != 0) fail_errno(prefix, "creating the folder", error, kFolderRemedy);
  }
  if (const int error = why_no_folder(path)) fail_errno(path, "creating the folder", error, kFolderRemedy);
}

void write_file(const std::string& path, std::span<const std::span<const std::byte>> parts, Sync sync) {
  uint64_t size = 0;
  for (const auto part : parts) size += part.size();
  write_file(
      path, size,
      [&](const PutPart& put) {
        uint64_t at = 0;
        for (const auto part : parts) {
          put(at, part);
          at += part.size();
        }
      },
      sync);
}

void write_file(const std::string& path, std::string_view text, Sync sync) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text.data(), text.size()));
  write_file(path, std::span(&part, 1), sync);
}

void write_file(const std::string& path, uint64_t size, const std::function<void(const PutPart&)>& write, Sync sync) {
  if (is_special(path)) {  // takes bytes in their order only
    std::vector<std::byte> all(size);
    write([&](uint64_t offset, std::span<const std::byte> part) {
      std::copy(part.begin(), part.end(), all.begin() + static_cast<int64_t>(offset));
    });
    Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (device.get() < 0) fail_errno(path, "opening the file", errno);
    check_written(path, write_all(device.get(), all));
    check_written(path, device.close() == 0 ? 0 : errno);
    return;
  }
  replace_file(path, sync, [&](int file) {
    check_written(path, ::ftruncate(file, static_cast<off_t>(size)) == 0 ? 0 : errno);
    write([&](uint64_t offset, std::span<const std::byte> part) {
      check_written(path, write_all_at(file, offset, part));
    });
  });
}

bool duplicate_file(const std::string& from, const std::string& to) {
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (source.get() < 0 || ::fstat(source.get(), &status) != 0) return false;
  if (is_special(to)) {
    write_file(to, MappedFile::read(from)->text());
    return true;
  }
  replace_file(to, Sync::kYes, [&](int file) {
    if (::ioctl(file, FICLONE, source.get()) == 0) return;
    check_written(to, copy_bytes(source.get(), file, static_cast<uint64_t>(status.st_size)));
  });
  return true;
}

void sweep_unfinished(const std::string& folder) {
  sweep_asides(folder, "");
}

uint64_t free_bytes(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) return 0;
  return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
}

uint64_t free_files(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0 || status.f_files == 0) return UINT64_MAX;
  return status.f_favail;
}

}  // namespace heddle
