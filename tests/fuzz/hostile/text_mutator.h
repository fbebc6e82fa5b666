#pragma once

#include <string>

#include "tests/fuzz/rng.h"

namespace heddle::fuzz {

// Damages textual IR: tokens replaced by others of their kind (an operator, an element type, a number, a value), an
// extent or a type changed everywhere, lines removed, repeated, swapped or taken from `other`, brackets nested, and now
// and then bytes.
std::string mutate_text(const std::string& text, const std::string& other, Rng& rng);

}  // namespace heddle::fuzz
