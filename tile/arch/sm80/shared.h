// Shared-memory addresses in the form that instructions use.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

// Converts a generic pointer into the block's shared memory to a 32-bit shared-memory address.
__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace heddle::tile::cuda
