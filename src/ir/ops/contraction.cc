#include "ir/ops/families.h"

namespace heddle::ir {

std::span<const OpSchema> contraction_schemas() {
  return {};
}

}  // namespace heddle::ir
