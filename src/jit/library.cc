#include "jit/library.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/file.h"

namespace heddle::jit {
namespace {

// The loader knows libraries by path, and this path is free again only when the descriptor is closed; so the
// descriptor stays open as long as the library is loaded.
int open_memory(std::string_view bytes) {
  const int fd = ::memfd_create("heddle-kernels", MFD_CLOEXEC);
  if (fd < 0) return -1;
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      ::close(fd);
      return -1;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return fd;
}

[[noreturn]] void fail_load() {
  const char* reason = ::dlerror();
  fail(ErrorCode::kDamagedArtefact, "kernel library",
       fmt::format("it cannot be loaded: {}", reason == nullptr ? "unknown reason" : reason),
       "Compile the model again on this machine");
}

}  // namespace

std::shared_ptr<const Library> Library::load(std::string_view bytes) {
  const int fd = open_memory(bytes);
  if (fd >= 0) {
    void* handle = ::dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return std::shared_ptr<const Library>(new Library(handle, fd));
    ::close(fd);
  }
  // Systems that forbid executing memory files, or have no /proc, may allow an ordinary one.
  const TempDir dir("heddle-load");
  const std::string path = dir.path() + "/kernels.so";
  write_file(path, bytes, Sync::kNo);
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) fail_load();
  return std::shared_ptr<const Library>(new Library(handle, -1));
}

Library::~Library() {
  ::dlclose(handle_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

Kernel Library::find(const std::string& symbol) const {
  void* address = ::dlsym(handle_, symbol.c_str());
  if (address == nullptr) {
    fail(ErrorCode::kDamagedArtefact, "kernel library", fmt::format("there is no kernel {}", symbol),
         "Compile the model again");
  }
  return reinterpret_cast<Kernel>(address);
}

}  // namespace heddle::jit
