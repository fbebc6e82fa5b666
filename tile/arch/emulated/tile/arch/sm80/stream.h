// Twin of tile/arch/sm80/stream.h.
#pragma once

namespace heddle::tile::sm80 {

template <typename T>
inline T load_stream(const T* p) {
  static_assert(sizeof(T) == 16 && alignof(T) == 16);
  return *p;
}

inline void prefetch(const void*) {}

template <typename T>
inline T load_here(const T* p) {
  static_assert(sizeof(T) == 16 && alignof(T) == 16);
  return *p;
}

}  // namespace heddle::tile::sm80
