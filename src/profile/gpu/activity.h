#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/gpu/operation.h"

namespace heddle::profile {

// The number of problems of each kind in a buffer, and the time that CUPTI itself took.
struct ActivityCounts {
  uint64_t unknown_times = 0, unknown_kinds = 0, malformed = 0;
  uint64_t overhead_ns = 0;  // time that CUPTI itself took
};

// Returns the record that follows `previous` in a buffer (null: returns the first record), or null at the end of the
// buffer.
using NextRecord = std::function<const uint8_t*(std::span<const uint8_t> buffer, const uint8_t* previous)>;

// Adds the operations in a buffer of CUPTI records to `operations`, without their contexts. Records of unknown kinds
// are counted and skipped. Parsing stops at a record that is outside of the buffer, before its predecessor, or
// truncated by the end of the buffer. The names that records point to must be readable.
void parse_activity(std::span<const uint8_t> buffer, const NextRecord& next, std::vector<GpuOperation>& operations,
                    ActivityCounts& counts);

// The unique copy of a text in this process.
const std::string* interned(std::string_view text);

}  // namespace heddle::profile
