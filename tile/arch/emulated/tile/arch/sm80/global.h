// Emulates tile/arch/sm80/global.h.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

struct alignas(16) Quad {
  uint32_t words[4];
};
HEDDLE_UNREPORTED inline void store_together(Quad* to, const Quad& q, HEDDLE_PLACE) {
  heddle_emulated_api->poll(place);
  emulated::report(to, sizeof q, emulated::Access::kAtomicWrite, place);
  *to = q;
}
HEDDLE_UNREPORTED inline Quad load_together(const Quad* from, HEDDLE_PLACE) {
  heddle_emulated_api->poll(place);
  emulated::report(from, sizeof(Quad), emulated::Access::kAtomicRead, place);
  const Quad quad = *from;
  for (int i = 0; i < 4; ++i) heddle_emulated_api->saw(&from->words[i], quad.words[i], false);
  return quad;
}

template <bool Acquires, typename T>
HEDDLE_UNREPORTED inline T load_now(const T* from, HEDDLE_PLACE) {
  heddle_emulated_api->poll(place);
  emulated::report(from, sizeof(T), Acquires ? emulated::Access::kAcquire : emulated::Access::kAtomicRead, place);
  const T word = *from;
  heddle_emulated_api->saw(from, word, false);
  return word;
}

}  // namespace heddle::tile::sm80
