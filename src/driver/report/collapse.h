#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace heddle::driver {

// A range of a sequence that starts at `begin` and consists of `count` equal blocks of `period` items.
struct Repeat {
  size_t begin = 0, period = 0, count = 0;
};

// Finds disjoint repeats in a sequence of signatures, such as the layers of a network, so that a table or a picture can
// show each repeated block once. Prefers the repeats that save the most items. Returns the repeats in order of
// position.
std::vector<Repeat> find_repeats(const std::vector<std::string>& signatures);

}  // namespace heddle::driver
