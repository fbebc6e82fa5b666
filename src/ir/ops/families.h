#pragma once

#include <span>

#include "ir/schema.h"

namespace heddle::ir {

// The tables of primitive operations: one table per family, each in its own file. ir/schema.cc joins the tables. A new
// family must be declared here.
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
