#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/scalar/functor_members.h"
#include "target/cuda_launch.h"

namespace heddle::codegen {

// A functor that a CUDA template calls: its text, and its argument block. The text names strides by members, so that
// problems of different sizes share machine code; their values are in the block.
struct CudaFunctor {
  std::string text;                    // "struct Epilogue { ... };\n"
  std::vector<std::string> includes;   // beside those of the template
  std::vector<uint8_t> block;          // the bytes of one object: pointers (zero until they are patched), then strides
  std::vector<PointerPatch> pointers;  // `offset` in the block, `operand` of the kernel; `argument` is left at 0
  std::optional<uint32_t> residual{};  // of an epilogue: the operand whose elements the kernel may hand over
  bool operator==(const CudaFunctor&) const = default;
};

// Fills in block and pointers.
void pack(const FunctorMembers& members, CudaFunctor& functor);

}  // namespace heddle::codegen
