#include "driver/packing.h"

#include "schedule/packing.h"

namespace heddle::driver {

Tensor pack(const Tensor& dense, const schedule::Packing& packing) {
  return schedule::pack_constant(dense, packing);
}

}  // namespace heddle::driver
