#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::profile {

// Copies memory of this process that may not be there. A system call: it takes no lock, and a signal handler may use
// it. Returns whether all of it was there.
bool read_memory(uint64_t address, void* to, size_t bytes);

template <typename T>
bool read_memory(uint64_t address, T* to) {
  return read_memory(address, to, sizeof(T));
}

// Pieces of equal size, behind each other into `to`, in one call: how many from the front on were there. At most
// kMostPieces.
inline constexpr size_t kMostPieces = 16;
size_t read_pieces(std::span<const uint64_t> addresses, void* to, size_t bytes);

// Pieces of several sizes into as many places, in one call. Returns whether all of them were there.
struct MemoryPiece {
  uint64_t address;
  void* to;
  size_t bytes;
};
bool read_pieces(std::span<const MemoryPiece> pieces);

// Reads of one walk: what lies in front of a piece is read with it, since frames lie close together, callers in front.
class NearbyMemory {
 public:
  bool read(uint64_t address, void* to, size_t bytes);

 private:
  std::array<uint8_t, 1024> block_;
  uint64_t begin_ = 0, end_ = 0;
};

}  // namespace heddle::profile
