#include "ir/ops/families.h"

namespace heddle::ir {

std::span<const OpSchema> window_schemas() {
  return {};
}

}  // namespace heddle::ir
