#include "ir/ops/families.h"

namespace heddle::ir {

std::span<const OpSchema> call_schemas() {
  return {};
}

}  // namespace heddle::ir
