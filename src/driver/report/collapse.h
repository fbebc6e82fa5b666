#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace heddle::driver {

// A stretch of a sequence that consists of `count` equal blocks of `period` items, from `begin`.
struct Repeat {
  size_t begin = 0, period = 0, count = 0;
};

// Finds disjoint repeats in a sequence of signatures, such as the layers of a network, so that a table or a picture
// shows one of them. Repeats that save most are taken first. They are returned in order.
std::vector<Repeat> find_repeats(const std::vector<std::string>& signatures);

}  // namespace heddle::driver
