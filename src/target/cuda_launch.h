#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

// How the copy engine sees an operand, as plain data: a rank-3 tensor (inner, row, batch) cut into boxes.
struct TensorMapDesc {
  enum class Element : uint8_t { kBits8, kBits16, kBits32, kTf32 };
  Element element = Element::kBits16;
  int operand = 0;                    // index of the buffer
  uint64_t offset = 0;                // of the tensor in the buffer, in bytes; a multiple of 16
  std::array<uint64_t, 3> extents{};  // in elements
  std::array<uint64_t, 2> strides{};  // of row and batch, in bytes; multiples of 16
  std::array<uint32_t, 2> box{};      // of inner and row
  int swizzle_bytes = 128;            // 16: none
  bool operator==(const TensorMapDesc&) const = default;
};

// Where a pointer to an operand goes in the argument block.
struct PointerPatch {
  int argument = 0;  // which argument
  int offset = 0;    // byte offset in it
  int operand = 0;
  bool operator==(const PointerPatch&) const = default;
};

// One kernel launch, without addresses: what a plan keeps. Arguments are the tensor maps in order, then `arguments`.
struct CudaLaunch {
  std::string symbol;
  uint32_t grid = 1, block = 128, shared_bytes = 0;
  std::vector<TensorMapDesc> maps;
  std::vector<std::vector<uint8_t>> arguments;
  std::vector<PointerPatch> pointers;  // `argument` counts in `arguments`
};

}  // namespace heddle
