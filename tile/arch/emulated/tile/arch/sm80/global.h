// Twin of tile/arch/sm80/global.h.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

inline void add_release(uint32_t* word, HEDDLE_PLACE) {
  heddle_emulated_api->poll(place);
  ++*word;
}
inline uint32_t load_acquire(const uint32_t* word, HEDDLE_PLACE) {
  heddle_emulated_api->poll(place);
  return *word;
}

}  // namespace heddle::tile::sm80
