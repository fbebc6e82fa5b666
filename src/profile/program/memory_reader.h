#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::profile {

// Copies memory of this process that may be unmapped. Returns true if all of it was mapped. The function is a single
// system call and takes no lock, so signal handlers may use it.
bool read_memory(uint64_t address, void* to, size_t bytes);

template <typename T>
bool read_memory(uint64_t address, T* to) {
  return read_memory(address, to, sizeof(T));
}

// Copies pieces of `bytes` bytes each, one after another, into `to`, with one system call. Returns the number of pieces
// before the first unmapped one. `addresses` has at most kMostPieces entries.
inline constexpr size_t kMostPieces = 16;
size_t read_pieces(std::span<const uint64_t> addresses, void* to, size_t bytes);

// Copies pieces of any size, each to its own destination, with one system call. Returns true if all pieces were mapped.
// At most kMostPieces pieces.
struct MemoryPiece {
  uint64_t address;
  void* to;
  size_t bytes;
};
bool read_pieces(std::span<const MemoryPiece> pieces);

// Reads memory for one walk of a Python stack. Each read also fetches the bytes just below the address, because the
// callers' frames are there.
class NearbyMemory {
 public:
  bool read(uint64_t address, void* to, size_t bytes);

 private:
  std::array<uint8_t, 1024> block_;
  uint64_t begin_ = 0, end_ = 0;
};

}  // namespace heddle::profile
