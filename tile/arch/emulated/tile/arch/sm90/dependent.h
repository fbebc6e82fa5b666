// Twin of tile/arch/sm90/dependent.h.
#pragma once

#include "tile/arch/emulated/keywords.h"

namespace heddle::tile::sm90 {

inline void let_next_begin() {}
inline void wait_for_previous(HEDDLE_PLACE) {
  heddle_emulated_api->wait_for_previous(place);
}
template <typename T>
inline T* behind_previous(T* p) {
  return p;
}

}  // namespace heddle::tile::sm90
