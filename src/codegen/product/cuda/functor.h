#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/scalar/functor_members.h"
#include "target/cuda_launch.h"

namespace heddle::codegen {

// A functor that a CUDA template calls: its text and its argument block. The text refers to strides by the names of
// members, and the block contains their values. So problems of different sizes share machine code.
struct CudaFunctor {
  std::string text;                    // "struct Epilogue { ... };\n"
  std::vector<std::string> includes;   // in addition to the template's includes
  std::vector<uint8_t> block;          // the bytes of one object: pointers (zero until they are patched), then strides
  std::vector<PointerPatch> pointers;  // offset within the block, operand number of the kernel; `argument` is 0
  std::optional<uint32_t> residual{};  // of an epilogue: the operand whose elements the kernel may pass in registers
  bool operator==(const CudaFunctor&) const = default;
};

// Sets functor.block and functor.pointers.
void pack(const FunctorMembers& members, CudaFunctor& functor);

}  // namespace heddle::codegen
