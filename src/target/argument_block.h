#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace heddle {

// True if every byte of `Args` belongs to a member. Types with floating-point members must specialise this: they never
// have unique object representations.
template <typename Args>
inline constexpr bool kNamesPadding = std::has_unique_object_representations_v<Args>;

// The bytes of the argument block, as a launch keeps it (CudaLaunch::arguments). Unnamed padding would put
// indeterminate bytes into plans, and two compilations of a model would differ.
template <typename Args>
std::vector<uint8_t> argument_bytes(const Args& args) {
  static_assert(std::is_trivially_copyable_v<Args> && kNamesPadding<Args>, "name the padding of the argument block");
  std::vector<uint8_t> bytes(sizeof(Args));
  std::memcpy(bytes.data(), &args, sizeof(Args));
  return bytes;
}

}  // namespace heddle
