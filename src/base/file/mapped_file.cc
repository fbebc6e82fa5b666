#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "base/check.h"
#include "base/file/file.h"
#include "base/file/trust.h"
#include "base/memory.h"
#include "base/thread/thread.h"
#include "base/thread/thread_pool.h"

namespace heddle {
namespace {

// Where files are mapped, so that release_pages() never touches other memory (whose content it would destroy).
struct Mappings {
  std::mutex mutex;
  std::map<uintptr_t, uintptr_t> ends;  // begin -> end
};

Mappings& mappings() {
  static auto* instance = new Mappings;  // outlives every static object that holds a mapping
  return *instance;
}

Descriptor open_file(const std::string& path, From from) {
  // A pipe without a writer would be waited for otherwise.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail_errno(path, "opening the file", errno, "Check the path and its permissions");
  if (from == From::kAnybody) return file;
  if (auto distrust = distrust_of_file(file.get(), path)) {
    fail(ErrorCode::kFile, distrust->where, distrust->why, distrust->remedy);
  }
  return file;
}

size_t size_of_regular(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail_errno(path, "reading the size", errno);
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::kFile, path, "not a regular file", "Pass the path of a file");
  return static_cast<size_t>(status.st_size);
}

void read_piece(int fd, const std::string& path, std::byte* to, size_t begin, size_t end) {
  while (begin < end) {
    const ssize_t got = ::pread(fd, to + begin, end - begin, static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno(path, "reading the file", errno);
    if (got == 0) {
      fail(ErrorCode::kFile, path, "it became shorter while it was read",
           "Replace files by renaming (mv, install) while others may read them, not by writing into them (cp)");
    }
    begin += static_cast<size_t>(got);
  }
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file = open_file(path, From::kAnybody);
  const size_t size = size_of_regular(file.get(), path);
  const std::byte* data = nullptr;
  if (size > 0) {
    void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (mapping == MAP_FAILED) fail_errno(path, "mapping the file", errno);
    data = static_cast<const std::byte*>(mapping);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, data, size, true));
}

std::shared_ptr<const MappedFile> MappedFile::read(const std::string& path, From from, int threads) {
  const Descriptor file = open_file(path, from);
  return read(file.get(), path, threads);
}

std::shared_ptr<const MappedFile> MappedFile::read(int fd, const std::string& path, int threads) {
  constexpr size_t kPiece = 16 << 20;
  const size_t size = size_of_regular(fd, path);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(path, nullptr, 0, false));
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail_allocation(path, size);
  auto* data = static_cast<std::byte*>(memory);
  std::shared_ptr<const MappedFile> content(new MappedFile(path, data, size, false));  // unmaps after an error
  advise_huge_pages(memory, size);
  const size_t pieces = (size + kPiece - 1) / kPiece;
  const std::unique_ptr<ThreadPool> pool =
      pool_of_up_to(std::clamp(threads, 1, static_cast<int>(std::min<size_t>(pieces, 64))));
  pool->run(static_cast<int64_t>(pieces), [&](int64_t begin, int64_t end, int) {
    read_piece(fd, path, data, static_cast<size_t>(begin) * kPiece, std::min(static_cast<size_t>(end) * kPiece, size));
  });
  ::mprotect(memory, size, PROT_READ);
  return content;
}

MappedFile::MappedFile(std::string path, const std::byte* data, size_t size, bool backed)
    : path_(std::move(path)), data_(data), size_(size), backed_(backed) {
  if (data_ == nullptr || !backed_) return;
  const std::lock_guard lock(mappings().mutex);
  mappings().ends[reinterpret_cast<uintptr_t>(data_)] = reinterpret_cast<uintptr_t>(data_) + size_;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  const std::lock_guard lock(mappings().mutex);
  if (backed_) mappings().ends.erase(reinterpret_cast<uintptr_t>(data_));
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

}  // namespace heddle
