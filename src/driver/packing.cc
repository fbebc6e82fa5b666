#include "driver/packing.h"

#include "base/check.h"

namespace heddle::driver {

Tensor pack(const Tensor&, const schedule::Packing& packing) {
  HEDDLE_CHECK(false, "there is no packing {}", packing.kind);
}

}  // namespace heddle::driver
