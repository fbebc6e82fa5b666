#pragma once

#include "codegen/region/cpu/context.h"

namespace heddle::codegen {

// Blocks of a buffer whose rows lie along another variable than the vectors do, through scratch.
void write_transposed(StitchContext& c, const schedule::Stage& stage, const schedule::TransposedLoad& t);
void write_transposed(StitchContext& c, const schedule::Stage& stage, const schedule::TransposedStore& t);

}  // namespace heddle::codegen
