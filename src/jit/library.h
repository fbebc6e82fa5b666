#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace heddle::jit {

// The signature of CPU kernels. A call runs tasks [begin, end). `operands` are the buffers. `scratch` is aligned to 64
// bytes and used by this call only.
using Kernel = void (*)(void* const* operands, void* scratch, int64_t begin, int64_t end);

// Throws kDamagedArtefact if a shared object is truncated: its headers refer to data beyond its end.
void check_whole(std::string_view bytes);

// A shared object loaded from memory, without a file on disk.
class Library {
 public:
  // Loads a shared object. As long as any reference to the result exists, further calls with equal bytes return the
  // same library. Throws kDamagedArtefact if this machine cannot load the bytes as a shared object.
  static std::shared_ptr<const Library> load(std::string_view bytes);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Throws kDamagedArtefact if the library lacks the symbol.
  Kernel find(const std::string& symbol) const;
  // Returns null if the library lacks the symbol.
  Kernel find_if_there(const std::string& symbol) const;

 private:
  static std::shared_ptr<const Library> load_new(std::string_view bytes);
  Library(void* handle, int descriptor) : handle_(handle), descriptor_(descriptor) {}
  void* handle_;
  int descriptor_;
};

}  // namespace heddle::jit
