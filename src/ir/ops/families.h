#pragma once

#include <span>

#include "ir/schema.h"

namespace heddle::ir {

// The tables of primitives, one per family and file. ir/schema.cc joins them. A family that is missing here does not
// exist.
std::span<const OpSchema> elementwise_schemas();
std::span<const OpSchema> source_schemas();
std::span<const OpSchema> layout_schemas();
std::span<const OpSchema> indexing_schemas();
std::span<const OpSchema> reduction_schemas();
std::span<const OpSchema> window_schemas();
std::span<const OpSchema> contraction_schemas();
std::span<const OpSchema> control_schemas();
std::span<const OpSchema> call_schemas();

}  // namespace heddle::ir
