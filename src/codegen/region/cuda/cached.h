#pragma once

#include <string>
#include <vector>

#include "codegen/region/cuda/context.h"

namespace heddle::codegen {

// What threads keep of their points from sweep to sweep: in registers, in slots of shared memory, or as loads that are
// under way.

// Declares what the stages keep in registers, and names all that they keep.
void declare_cached(SweepContext& c, const std::vector<schedule::CudaStage>& stages);
// Declares the running results of the serial loop.
void declare_carried(SweepContext& c);
// Declares what the stages ahead load.
void declare_ahead(SweepContext& c);

// Loads what a stage needs of the slots of its point.
void load_cached(SweepContext& c, const schedule::CudaStage& stage);
// Keeps what a stage computes of its point; `made`: it is there already.
void write_cached(SweepContext& c, const schedule::CudaStage& stage, bool made);

// The operand that a sweep keeps in shared memory, where it can be copied there without waiting for it; null: none.
const schedule::CachedValue* copied_operand(SweepContext& c, const schedule::CudaStage& stage);
void write_copy(SweepContext& c, const schedule::CudaStage& stage);
// Loads what was copied; it stands for the operand until it is dropped.
void use_copy(SweepContext& c, const schedule::CudaStage& stage);
void drop_copy(SweepContext& c, const schedule::CudaStage& stage);

}  // namespace heddle::codegen
