#pragma once

#include <string>
#include <vector>

#include "codegen/region/cuda/context.h"

namespace heddle::codegen {

// Values that threads keep for their points between sweeps: in registers, in slots of shared memory, or as loads in
// flight.

// Declares the values that the stages keep in registers, and names all values that they keep.
void declare_cached(SweepContext& c, const std::vector<schedule::CudaStage>& stages);
// Declares the running results of the serial loop.
void declare_carried(SweepContext& c);
// Declares the values that the stages of CudaStitchDesc::ahead load.
void declare_ahead(SweepContext& c);

// Loads the values in shared memory that a stage uses at its point.
void load_cached(SweepContext& c, const schedule::CudaStage& stage);
// Writes the values that a stage keeps for its point. `made`: those in registers and shared memory are there already.
void write_cached(SweepContext& c, const schedule::CudaStage& stage, bool made);

// The operand that a sweep keeps in shared memory, if an asynchronous copy can bring it there; else null.
const schedule::CachedValue* copied_operand(SweepContext& c, const schedule::CudaStage& stage);
void write_copy(SweepContext& c, const schedule::CudaStage& stage);
// Loads the copy, which stands for the operand until drop_copy().
void use_copy(SweepContext& c, const schedule::CudaStage& stage);
void drop_copy(SweepContext& c, const schedule::CudaStage& stage);

}  // namespace heddle::codegen
