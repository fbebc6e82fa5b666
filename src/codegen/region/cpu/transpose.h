#pragma once

#include "codegen/region/cpu/context.h"

namespace heddle::codegen {

// Copies blocks of a buffer through scratch memory. Used if the buffer is contiguous along a different loop variable
// than the vectorised one.
void write_transposed(StitchContext& c, const schedule::Stage& stage, const schedule::TransposedLoad& t);
void write_transposed(StitchContext& c, const schedule::Stage& stage, const schedule::TransposedStore& t);

}  // namespace heddle::codegen
