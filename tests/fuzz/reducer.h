#pragma once

#include <functional>

#include "tests/fuzz/graph_generator.h"

namespace heddle::fuzz {

// Makes a failing case small: drops outputs, turns computed values into parameters, lets nodes pass an operand through,
// removes unused parts and shrinks extents, as long as `fails` holds. At most `budget` calls of `fails`.
Case reduce_case(Case c, const std::function<bool(const Case&)>& fails, int budget = 2000);

}  // namespace heddle::fuzz
