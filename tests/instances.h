#pragma once
// How many instances of a template a test compiles: a few on every run, all of them where HEDDLE_ALL_INSTANCES is set, as
// bench/gpu.sh does.

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace heddle::test {

// `most` is what makes sense to compile at all.
inline size_t instances(size_t most) {
  return std::getenv("HEDDLE_ALL_INSTANCES") != nullptr ? most : std::max<size_t>(1, (most + 5) / 6);
}

}  // namespace heddle::test
