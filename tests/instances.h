#pragma once
// How many instances of a template a test compiles: a few on every run, all of them where HEDDLE_ALL_INSTANCES is set,
// as bench/gpu.sh does.

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace heddle::test {

constexpr size_t kOneOf = 7;  // odd, so that instances which alternate are taken alike

inline bool takes_all_instances() {
  const char* all = std::getenv("HEDDLE_ALL_INSTANCES");
  return all != nullptr && *all != '\0';
}

// `most` is what makes sense to compile at all.
inline size_t instances(size_t most) {
  return takes_all_instances() ? most : std::max<size_t>(1, (most + kOneOf - 1) / kOneOf);
}

// Whether the instance of this number, or hash, is among them.
inline bool takes_instance(size_t number) {
  return takes_all_instances() || number % kOneOf == 0;
}

}  // namespace heddle::test
