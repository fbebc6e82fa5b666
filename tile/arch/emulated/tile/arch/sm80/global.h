// Twin of tile/arch/sm80/global.h.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

struct alignas(16) Quad {
  uint32_t words[4];
};
inline void store_together(Quad* to, const Quad& q, HEDDLE_PLACE) {
  heddle_emulated_api->poll(place);
  *to = q;
}
inline Quad load_together(const Quad* from, HEDDLE_PLACE) {
  heddle_emulated_api->poll(place);
  return *from;
}

}  // namespace heddle::tile::sm80
