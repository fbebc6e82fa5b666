#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace heddle {

// A 128-bit content hash (XXH3). It is not cryptographic. It serves to detect damage and to name cache entries in a
// user's own folder.
struct Hash128 {
  uint64_t high = 0, low = 0;
  bool operator==(const Hash128&) const = default;
  std::string hex() const;  // 32 lower-case digits
};

Hash128 hash_bytes(const void* data, size_t bytes);
inline Hash128 hash_text(std::string_view text) {
  return hash_bytes(text.data(), text.size());
}

// Hashes a large range: `threads` threads hash pieces of 16 MiB in parallel, then the hashes of the pieces are hashed.
// The result does not depend on `threads`, but differs from that of hash_bytes().
Hash128 hash_large(const void* data, size_t bytes, int threads);

// Returns hash_large() of a file's content. The file is read through small buffers. It is not mapped, since a mapping
// would count as memory of this process. Throws kFile.
Hash128 hash_file(const std::string& path, int threads);
Hash128 hash_file(int fd, const std::string& path, int threads);  // `fd` is open for reading

// Hashes a sequence of fields. Each field is preceded by its size, so ("ab", "c") and ("a", "bc") have different
// hashes.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  Hasher& add(std::string_view field);
  Hasher& add(int64_t field);
  Hasher& add(const Hash128& field);
  Hash128 finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
