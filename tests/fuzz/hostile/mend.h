#pragma once

#include <string>

#include "tests/fuzz/rng.h"

namespace heddle::fuzz {

// Binary files with a header of fixed size, changed so that their checksums are right again and the change gets behind
// them. Where the file is too short for its header it stays as it is.
constexpr size_t kPlanHeader = 80, kEntryFrame = 64;
std::string mend_plan(std::string bytes);
std::string mend_entry(std::string bytes);

// One edit behind the first `keep` bytes: a number of 1 to 8 bytes, bits, a range removed, repeated or filled, or the
// end cut off.
void edit_binary(std::string& bytes, size_t keep, Rng& rng);

}  // namespace heddle::fuzz
