#include "jit/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "base/check.h"
#include "base/file/file.h"
#include "base/hash.h"

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

// The loader maps what the headers name and ends the process by a signal where the file has less.
bool is_cut_off(std::string_view bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header) return true;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto has = [&](uint64_t offset, uint64_t size) {
    return offset <= bytes.size() && size <= bytes.size() - offset;
  };
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return false;  // the loader says what is wrong
  if (!has(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr))) return true;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (!has(segment.p_offset, segment.p_filesz)) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<const Library> Library::load(std::string_view bytes) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const Library>> loaded;  // by hash of the bytes
  const std::string key = hash_text(bytes).hex();
  const std::lock_guard lock(mutex);
  std::erase_if(loaded, [](const auto& library) { return library.second.expired(); });
  std::weak_ptr<const Library>& known = loaded[key];
  std::shared_ptr<const Library> library = known.lock();
  if (library == nullptr) {
    library = load_new(bytes);
    known = library;
  }
  return library;
}

void check_whole(std::string_view bytes) {
  if (!is_cut_off(bytes)) return;
  fail(ErrorCode::kDamagedArtefact, "kernel library", "it is cut off", "Compile the model again on this machine");
}

std::shared_ptr<const Library> Library::load_new(std::string_view bytes) {
  check_whole(bytes);
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

Kernel Library::find_if_there(const std::string& symbol) const {
  return reinterpret_cast<Kernel>(::dlsym(handle_, symbol.c_str()));
}

Kernel Library::find(const std::string& symbol) const {
  const Kernel kernel = find_if_there(symbol);
  if (kernel == nullptr) {
    fail(ErrorCode::kDamagedArtefact, "kernel library", fmt::format("there is no kernel {}", symbol),
         "Compile the model again");
  }
  return kernel;
}

}  // namespace heddle::jit
