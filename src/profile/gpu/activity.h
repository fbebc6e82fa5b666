#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/gpu/operation.h"

namespace heddle::profile {

// What a buffer had that is no operation.
struct ActivityCounts {
  uint64_t unknown_times = 0, unknown_kinds = 0, malformed = 0;
  uint64_t overhead_ns = 0;  // of CUPTI itself
};

// The record behind `previous` (null: the first) in a buffer; null: there is none.
using NextRecord = std::function<const uint8_t*(std::span<const uint8_t> buffer, const uint8_t* previous)>;

// Adds the operations of a buffer of CUPTI's records, without their contexts. What is unknown is counted and skipped;
// a record outside of the buffer, before its predecessor or cut off by the buffer's end ends the walk. Names that
// records point to must be readable.
void parse_activity(std::span<const uint8_t> buffer, const NextRecord& next, std::vector<GpuOperation>& operations,
                    ActivityCounts& counts);

// The one copy of a text that this process keeps.
const std::string* interned(std::string_view text);

}  // namespace heddle::profile
