// Addresses of shared memory as the instructions want them.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

// The 32-bit address, within the block's shared memory, of what a pointer into it points at.
__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace heddle::tile::cuda
