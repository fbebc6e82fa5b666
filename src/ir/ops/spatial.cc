#include "ir/ops/spatial.h"

#include "ir/ops/rules.h"

namespace heddle::ir {
namespace {
constexpr int64_t kLimit = int64_t{1} << 31;
}

void check_spatial_attr(const char* name, const Ints& values, size_t count, int64_t lowest) {
  require(values.size() == count, "{} has {} values, {} expected", name, values.size(), count);
  for (int64_t v : values) require(v >= lowest && v < kLimit, "{} has the value {}", name, v);
}

int64_t windowed_extent(size_t dim, int64_t extent, int64_t low, int64_t high, int64_t size, int64_t dilation,
                        int64_t stride) {
  int64_t padded = 0;
  const bool overflow = __builtin_add_overflow(extent, low, &padded) || __builtin_add_overflow(padded, high, &padded);
  require(!overflow, "dimension {} with padding is too large", dim);
  const int64_t reach = (size - 1) * dilation + 1;
  if (padded >= reach) return (padded - reach) / stride + 1;
  require(extent == 0 || padded <= 0,
          "a window of {} (dilation {}) does not fit dimension {} of extent {} padded by {} and {}", size, dilation,
          dim, extent, low, high);
  return 0;
}

}  // namespace heddle::ir
