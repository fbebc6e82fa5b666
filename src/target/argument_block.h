#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace heddle {

// True if every byte of `Args` belongs to a member. A type with floating-point members must specialise this, because
// such a type never has unique object representations.
template <typename Args>
inline constexpr bool kNamesPadding = std::has_unique_object_representations_v<Args>;

// Returns the bytes of an argument block, as a launch stores them (CudaLaunch::arguments). Unnamed padding is rejected:
// it would put indeterminate bytes into plans, so two compilations of the same model would differ.
template <typename Args>
std::vector<uint8_t> argument_bytes(const Args& args) {
  static_assert(std::is_trivially_copyable_v<Args> && kNamesPadding<Args>, "name the padding of the argument block");
  std::vector<uint8_t> bytes(sizeof(Args));
  std::memcpy(bytes.data(), &args, sizeof(Args));
  return bytes;
}

}  // namespace heddle
