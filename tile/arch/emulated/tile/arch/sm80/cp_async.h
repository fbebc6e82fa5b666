// Emulated version of tile/arch/sm80/cp_async.h. The emulator performs a copy either immediately or as late as allowed.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

#if defined(TILE_HIP)
inline constexpr bool kCopiesAsync = false;
#else
inline constexpr bool kCopiesAsync = true;
#endif

template <int Bytes>
inline void copy_async(uint32_t to, const void* from, uint32_t valid, HEDDLE_PLACE) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  heddle_emulated_api->copy_async(to, from, Bytes, valid, place);
}
template <int Bytes>
inline void copy_async_if(bool wanted, uint32_t to, const void* from, uint32_t valid, HEDDLE_PLACE) {
  static_assert(Bytes == 16);
  if (wanted) heddle_emulated_api->copy_async(to, from, Bytes, valid, place);
}
inline void copy_async_evict_first(uint32_t to, const void* from, HEDDLE_PLACE) {
  heddle_emulated_api->copy_async(to, from, 16, 16, place);
}
inline void copy_async_l1_resident(uint32_t to, const void* from, HEDDLE_PLACE) {
  heddle_emulated_api->copy_async(to, from, 16, 16, place);
}
inline void commit_copies() {
  heddle_emulated_api->copy_commit();
}
template <int Pending>
inline void wait_copies() {
  heddle_emulated_api->copy_wait(Pending);
}

}  // namespace heddle::tile::sm80
