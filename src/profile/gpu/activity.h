#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/gpu/operation.h"

namespace heddle::profile {

// Counts of problems in a buffer, and CUPTI's overhead.
struct ActivityCounts {
  uint64_t unknown_times = 0, unknown_kinds = 0, malformed = 0;
  uint64_t overhead_ns = 0;  // of CUPTI itself
};

// Returns the record after `previous` (null: the first record) in a buffer, or null at its end.
using NextRecord = std::function<const uint8_t*(std::span<const uint8_t> buffer, const uint8_t* previous)>;

// Adds the operations of a buffer of CUPTI's records, without their contexts. Records of unknown kinds are counted and
// skipped. Parsing ends at a record that is outside of the buffer, before its predecessor or cut off by the buffer's
// end. Names that records point to must be readable.
void parse_activity(std::span<const uint8_t> buffer, const NextRecord& next, std::vector<GpuOperation>& operations,
                    ActivityCounts& counts);

// The one copy of a text that this process keeps.
const std::string* interned(std::string_view text);

}  // namespace heddle::profile
