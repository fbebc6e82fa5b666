#include "frontend/onnx/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace heddle::onnx {

MappedFile map_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    fail(ErrorCode::kFile, path, fmt::format("the file cannot be opened: {}", std::strerror(errno)),
         "Check the path and its permissions");
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    fail(ErrorCode::kFile, path, "this is not a regular file", "Give the path of a file");
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) {
    ::close(fd);
    return {};
  }
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  ::close(fd);
  if (memory == MAP_FAILED) {
    fail(ErrorCode::kFile, path, fmt::format("the file cannot be mapped: {}", std::strerror(error)));
  }
  std::shared_ptr<const void> owner(memory, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return {{static_cast<const char*>(memory), size}, std::move(owner)};
}

}  // namespace heddle::onnx
