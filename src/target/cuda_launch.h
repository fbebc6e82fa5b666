#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heddle {

// The input pixels that one tap reads in all windows of a convolution, for the im2col mode of TMA. Pairs are (width,
// height).
struct TensorMapWindows {
  std::array<uint64_t, 2> size{};   // of an image, in pixels
  uint64_t line = 0;                // bytes from one line of pixels to the next; a multiple of 16
  std::array<int32_t, 2> first{};   // position of the tap in the first window: -padding
  std::array<int32_t, 2> last{};    // position of the tap in the last window, relative to the last pixel
  std::array<uint32_t, 2> steps{};  // pixels from one window to the next
  bool operator==(const TensorMapWindows&) const = default;
};

// An operand of TMA, as plain data. It is a rank-3 tensor (inner, row, batch) cut into boxes, or a rank-4 tensor if the
// extent of `outer` is not 0. With `windows`, the tensor is (channel, pixel of a line, image). A box then contains one
// pixel of each of box[1] consecutive windows, with box[0] channels per pixel. Windows are numbered consecutively
// through all images.
struct TensorMapDesc {
  enum class Element : uint8_t { kBits8, kBits16, kBits32, kTf32 };
  Element element = Element::kBits16;
  int operand = 0;                    // index of the operand's buffer
  uint64_t offset = 0;                // of the tensor in the buffer, in bytes; a multiple of 16
  std::array<uint64_t, 3> extents{};  // in elements
  std::array<uint64_t, 2> strides{};  // of row and batch, in bytes; multiples of 16
  std::array<uint32_t, 2> box{};      // of inner and row
  int swizzle_bytes = 128;            // 16: no swizzle
  std::optional<TensorMapWindows> windows{};
  std::array<uint64_t, 2> outer{};  // extent and stride (bytes, a multiple of 16) of a fourth dimension; 0: none
  bool operator==(const TensorMapDesc&) const = default;
};

inline constexpr size_t kTensorMapBytes = 128;
// The size in bytes of a thread's widest access. TMA addresses and strides must be multiples of it.
inline constexpr int64_t kCopyBytes = 16;

// The location of the pointer to an operand in the argument block.
struct PointerPatch {
  int argument = 0;  // index of the argument
  int offset = 0;    // byte offset in the argument
  int operand = 0;
  int64_t begin = 0;  // byte offset in the operand
  bool operator==(const PointerPatch&) const = default;
};

// One kernel launch without addresses, as stored in a plan. The kernel's arguments are the tensor maps in order, then
// `arguments`. The addresses of operands are multiples of 16.
struct CudaLaunch {
  std::string symbol;
  std::array<uint32_t, 3> grid{1, 1, 1};  // in blocks
  uint32_t block = 128;                   // threads, along x
  uint32_t shared_bytes = 0;              // dynamic
  uint32_t cluster = 1;      // blocks along x; divides grid[0]; equal to the cluster size in the kernel's text, if any
  bool cooperative = false;  // all blocks must run at once, since they wait for each other
  // Programmatic dependent launch: the kernel may begin while the previous launch still runs. The kernel itself waits
  // for that launch before it accesses its counters or memory that other launches write.
  bool early = false;
  std::vector<TensorMapDesc> maps;
  std::vector<std::vector<uint8_t>> arguments;
  std::vector<PointerPatch> pointers;  // `argument` is an index into `arguments`
  bool operator==(const CudaLaunch&) const = default;
};

// The maximum size in bytes of the counters of a step.
inline constexpr int64_t kMostCounterBytes = 1 << 24;

}  // namespace heddle
