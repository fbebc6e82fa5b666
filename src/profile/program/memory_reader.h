#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::profile {

// Copies memory of this process that may not be mapped. It is a system call and takes no lock, so a signal handler may
// use it. Returns true if all of it was mapped.
bool read_memory(uint64_t address, void* to, size_t bytes);

template <typename T>
bool read_memory(uint64_t address, T* to) {
  return read_memory(address, to, sizeof(T));
}

// Copies pieces of `bytes` bytes each one after another into `to`, in one call. Returns how many were mapped, up to the
// first that was not. At most kMostPieces.
inline constexpr size_t kMostPieces = 16;
size_t read_pieces(std::span<const uint64_t> addresses, void* to, size_t bytes);

// Copies pieces of any sizes, each to its own place, in one call. Returns true if all of them were mapped.
struct MemoryPiece {
  uint64_t address;
  void* to;
  size_t bytes;
};
bool read_pieces(std::span<const MemoryPiece> pieces);

// Reads memory for one stack walk. A read also fetches the bytes below the piece, where the callers' frames are.
class NearbyMemory {
 public:
  bool read(uint64_t address, void* to, size_t bytes);

 private:
  std::array<uint8_t, 1024> block_;
  uint64_t begin_ = 0, end_ = 0;
};

}  // namespace heddle::profile
