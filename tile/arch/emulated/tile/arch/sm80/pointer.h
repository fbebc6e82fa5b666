// Emulated version of tile/arch/sm80/pointer.h.
#pragma once

namespace heddle::tile::sm80 {

template <typename T>
inline T* anchored(T* p) {
  return p;
}

}  // namespace heddle::tile::sm80
