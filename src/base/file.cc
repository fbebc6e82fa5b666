#include "base/file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/file_parts.h"

namespace heddle {
namespace {

constexpr const char* kFolderRemedy = "Name a folder that exists or can be made, on a disk that may be written";

[[noreturn]] void fail_errno(const std::string& path, const char* action, int error, std::string remedy = {}) {
  fail(ErrorCode::kFile, path, fmt::format("{} failed: {}", action, std::strerror(error)), std::move(remedy));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  // Some file systems report a failed write only here.
  int close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd);
  }

 private:
  int fd_;
};

// Where files are mapped, so that release_pages() never touches other memory (whose content it would destroy).
struct Mappings {
  std::mutex mutex;
  std::map<uintptr_t, uintptr_t> ends;  // begin -> end
};

Mappings& mappings() {
  static auto* instance = new Mappings;  // outlives every static object that holds a mapping
  return *instance;
}

constexpr size_t kMostWritten = 1 << 30;  // one call writes at most 2 GiB

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
  return fmt::format("{}.{}.{}.tmp", path, ::getpid(), counter.fetch_add(1));
}

void check_written(const std::string& path, int error) {
  if (error != 0) fail_errno(path, "writing the file", error, error == ENOSPC ? "Make room on the disk" : "");
}

// Gives fill(fd) a new file, which then takes the place of `path`.
template <typename Fill>
void replace_file(const std::string& path, Sync sync, const Fill& fill) {
  const std::string target = behind_links(path), aside = aside_name(target);
  Descriptor file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) fail_errno(path, "creating the file", errno, "Check that the folder exists and may be written");
  try {
    fill(file.get());
    if (sync == Sync::kYes) check_written(path, ::fsync(file.get()) == 0 ? 0 : errno);
    check_written(path, file.close() == 0 ? 0 : errno);
    check_written(path, ::rename(aside.c_str(), target.c_str()) == 0 ? 0 : errno);
  } catch (...) {
    ::unlink(aside.c_str());
    throw;
  }
}

// A new file that shares its blocks with another one until either is written to (XFS, Btrfs). False where the file
// system cannot; there is no new file then.
bool clone_file(int from, const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) return false;
  if (::ioctl(file.get(), FICLONE, from) == 0) return true;
  ::unlink(path.c_str());
  return false;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  // A pipe without a writer would be waited for otherwise.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail_errno(path, "opening the file", errno, "Check the path and its permissions");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_errno(path, "reading the size", errno);
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::kFile, path, "not a regular file", "Pass the path of a file");
  const auto size = static_cast<size_t>(status.st_size);
  const std::byte* data = nullptr;
  if (size > 0) {
    void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (mapping == MAP_FAILED) fail_errno(path, "mapping the file", errno);
    data = static_cast<const std::byte*>(mapping);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, data, size));
}

MappedFile::MappedFile(std::string path, const std::byte* data, size_t size)
    : path_(std::move(path)), data_(data), size_(size) {
  if (data_ == nullptr) return;
  const std::lock_guard lock(mappings().mutex);
  mappings().ends[reinterpret_cast<uintptr_t>(data_)] = reinterpret_cast<uintptr_t>(data_) + size_;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  const std::lock_guard lock(mappings().mutex);
  mappings().ends.erase(reinterpret_cast<uintptr_t>(data_));
  ::munmap(const_cast<std::byte*>(data_), size_);
}

void release_pages(const void* data, size_t bytes) {
  constexpr uintptr_t kPage = 4096;
  const auto begin = (reinterpret_cast<uintptr_t>(data) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) / kPage * kPage;
  if (begin >= end) return;
  const std::lock_guard lock(mappings().mutex);
  const auto& ends = mappings().ends;
  const auto after = ends.upper_bound(begin);
  if (after == ends.begin() || end > std::prev(after)->second) return;
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

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
    if (!std::filesystem::is_directory(prefix)) fail_errno(prefix, "creating the folder", error, kFolderRemedy);
  }
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) fail_errno(path, "creating the folder", ENOTDIR, kFolderRemedy);
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
  if (source.get() < 0) return false;
  const std::shared_ptr<const MappedFile> content = MappedFile::open(from);
  if (is_special(to)) {
    write_file(to, content->text());
    return true;
  }
  const std::string target = behind_links(to), aside = aside_name(target);
  if (!clone_file(source.get(), aside) && ::link(from.c_str(), aside.c_str()) != 0) {
    write_file(to, content->text(), Sync::kNo);
    return true;
  }
  const int error = ::rename(aside.c_str(), target.c_str()) == 0 ? 0 : errno;
  ::unlink(aside.c_str());  // still there too where both were names of one file already
  check_written(to, error);
  return true;
}

uint64_t free_bytes(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) return 0;
  return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
}

TempDir::TempDir(const std::string& prefix, const std::string& root) {
  const char* variable = std::getenv("TMPDIR");
  const std::string standard = variable != nullptr && *variable != '\0' ? variable : "/tmp";
  std::string name = fmt::format("{}/{}.XXXXXX", root.empty() ? standard : root, prefix);
  if (::mkdtemp(name.data()) == nullptr) {
    fail_errno(name, "creating a temporary folder", errno, "Set TMPDIR to a folder that may be written");
  }
  path_ = std::move(name);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace heddle
