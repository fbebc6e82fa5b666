// The functions of tile/arch/sm80/shared.h for AMD GPUs.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>((__attribute__((address_space(3))) const void*)pointer));
}

}  // namespace heddle::tile::cuda
