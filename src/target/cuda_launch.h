#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heddle {

// The pixels under one tap of a convolution's windows: (width, height) each.
struct TensorMapWindows {
  std::array<uint64_t, 2> size{};   // of an image, in pixels
  uint64_t line = 0;                // from a line of pixels to the next, in bytes; a multiple of 16
  std::array<int32_t, 2> first{};   // the tap of the first window: -padding
  std::array<int32_t, 2> last{};    // that of the last window, counted from the last pixel
  std::array<uint32_t, 2> steps{};  // from window to window
  bool operator==(const TensorMapWindows&) const = default;
};

// How TMA sees an operand, as plain data: a rank-3 tensor (inner, row, batch) cut into boxes, or one of
// rank 4 where `outer` has an extent. With `windows` it is (channel, pixel of a line, image), and a box holds that many
// channels of so many windows' pixels, the windows of all images one behind another.
struct TensorMapDesc {
  enum class Element : uint8_t { kBits8, kBits16, kBits32, kTf32 };
  Element element = Element::kBits16;
  int operand = 0;                    // index of the buffer
  uint64_t offset = 0;                // of the tensor in the buffer, in bytes; a multiple of 16
  std::array<uint64_t, 3> extents{};  // in elements
  std::array<uint64_t, 2> strides{};  // of row and batch, in bytes; multiples of 16
  std::array<uint32_t, 2> box{};      // of inner and row
  int swizzle_bytes = 128;            // 16: none
  std::optional<TensorMapWindows> windows{};
  std::array<uint64_t, 2> outer{};  // extent and stride (bytes, a multiple of 16) of a fourth dimension; 0: none
  bool operator==(const TensorMapDesc&) const = default;
};

inline constexpr size_t kTensorMapBytes = 128;
// Bytes of the widest access of a thread, and what TMA wants addresses and strides to be multiples of.
inline constexpr int64_t kCopyBytes = 16;

// Where a pointer to an operand goes in the argument block.
struct PointerPatch {
  int argument = 0;  // which argument
  int offset = 0;    // byte offset in it
  int operand = 0;
  int64_t begin = 0;  // of what is pointed to in the operand, in bytes
  bool operator==(const PointerPatch&) const = default;
};

// One kernel launch, without addresses: what a plan keeps. Arguments are the tensor maps in order, then `arguments`.
// The addresses of operands are multiples of 16.
struct CudaLaunch {
  std::string symbol;
  std::array<uint32_t, 3> grid{1, 1, 1};  // in blocks
  uint32_t block = 128;                   // threads, along x
  uint32_t shared_bytes = 0;              // dynamic
  uint32_t cluster = 1;      // blocks along x; divides grid[0]; a kernel that fixes it in its text says the same
  bool cooperative = false;  // all blocks run at once: they wait for each other
  // Programmatic dependent launch: may begin while the launch before it still runs; the kernel itself waits before it
  // touches what other launches write, and before its counters.
  bool early = false;
  std::vector<TensorMapDesc> maps;
  std::vector<std::vector<uint8_t>> arguments;
  std::vector<PointerPatch> pointers;  // `argument` counts in `arguments`
  bool operator==(const CudaLaunch&) const = default;
};

// Of the counters of a step.
inline constexpr int64_t kMostCounterBytes = 1 << 24;

}  // namespace heddle
