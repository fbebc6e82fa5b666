// The emulator's version of tile/arch/sm90/dependent.h.
#pragma once

#include "tile/arch/emulated/keywords.h"

namespace heddle::tile::sm90 {

inline void launch_dependents() {}
inline void grid_dependency_wait(HEDDLE_PLACE) {
  heddle_emulated_api->grid_dependency_wait(place);
}
template <typename T>
inline T* launder_after_wait(T* p) {
  return p;
}

}  // namespace heddle::tile::sm90
