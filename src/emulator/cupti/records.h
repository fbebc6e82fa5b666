#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/driver/observer.h"

namespace heddle::emulator {

struct Times {
  uint64_t start = 0, end = 0;
};

// record_of() writes an activity record in the format of CUPTI 13.0, or of CUPTI 12 if `old`. `name` must outlive the
// record. unknown_record() writes a record of a kind that clients do not know.
std::vector<uint8_t> record_of(const Work& work, const Times& times, const char* name, bool old);
std::vector<uint8_t> unknown_record();
// Returns the size of the record at `bytes`, or 0 if record_of() and unknown_record() do not write records of its kind.
size_t record_bytes(const uint8_t* bytes, bool old);
// The CUPTI activity kind of the records for work of this kind.
uint32_t activity_of(Work::Kind kind);

}  // namespace heddle::emulator
