#pragma once

#include <string>

#include "tests/fuzz/rng.h"

namespace heddle::fuzz {

// Damages the bytes of a model file in one to four ways: flipped bits and bytes, interesting bytes, truncation,
// removed, repeated or moved ranges, a splice with another model, and edits of the protobuf itself (lengths, tags and
// varints of a field found by walking the wire format). Most edits fall into the header and the graph, not into the
// weights.
std::string mutate(const std::string& model, const std::string& other, Rng& rng);

}  // namespace heddle::fuzz
