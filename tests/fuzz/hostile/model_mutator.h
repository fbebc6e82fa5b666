#pragma once

#include <string>

#include "tests/fuzz/rng.h"

namespace heddle::fuzz {

// Damages a model file. Mostly the protobuf tree is edited and written back with right lengths, so that the damage
// reaches the importer: numbers, names and contents changed, fields removed, repeated, swapped, renumbered or replaced
// by parts of `other`; now and then one length lies. Else the bytes themselves are edited: bits flipped, ranges removed
// or repeated, the file truncated or spliced with the other one.
std::string mutate(const std::string& model, const std::string& other, Rng& rng);

}  // namespace heddle::fuzz
