#include "ir/ops/families.h"

namespace heddle::ir {

std::span<const OpSchema> control_schemas() {
  return {};
}

}  // namespace heddle::ir
