#pragma once

#include "codegen/codegen.h"

namespace heddle::codegen {

// Adds the tile headers of rarely used functions (transposes, random numbers, narrow types) that the text names.
void add_named_headers(KernelText& source);

}  // namespace heddle::codegen
