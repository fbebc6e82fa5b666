#pragma once

#include "codegen/region/cpu/context.h"

namespace heddle::codegen {

// Moves blocks of a buffer through scratch, if the buffer's rows lie along another variable than the vectors.
void write_transposed(StitchContext& c, const schedule::Stage& stage, const schedule::TransposedLoad& t);
void write_transposed(StitchContext& c, const schedule::Stage& stage, const schedule::TransposedStore& t);

}  // namespace heddle::codegen
