#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/driver/observer.h"

namespace heddle::emulator {

struct Times {
  uint64_t start = 0, end = 0;
};

// A record of CUPTI 13.0, or of CUPTI 12 where it is `old`. `name` outlives the record.
std::vector<uint8_t> record_of(const Work& work, const Times& times, const char* name, bool old);
std::vector<uint8_t> unknown_record();
// Of the record at `bytes`; 0 for a kind that is not of these.
size_t record_bytes(const uint8_t* bytes, bool old);
// The kind of activity that a record of this work has.
uint32_t activity_of(Work::Kind kind);

}  // namespace heddle::emulator
