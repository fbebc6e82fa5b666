#pragma once

#include <string>
#include <vector>

#include "codegen/region/cuda/context.h"

namespace heddle::codegen {

// Code for values that a thread caches between passes over the data. A value is cached in registers, in slots of shared
// memory, or as a load in flight.

// Declares the variables that the stages cache in registers. Registers the names of all values that the stages cache.
void declare_cached(SweepContext& c, const std::vector<schedule::CudaStage>& stages);
// Declares the accumulators that the serial loop carries.
void declare_carried(SweepContext& c);
// Declares the registers for the values that the stages of CudaStitchDesc::ahead load in advance.
void declare_ahead(SweepContext& c);

// Loads from shared memory the cached values that a stage uses in the current iteration.
void load_cached(SweepContext& c, const schedule::CudaStage& stage);
// Stores the values that a stage caches in the current iteration. If `made`, registers and shared memory already hold
// their values, and only loads in flight are written.
void write_cached(SweepContext& c, const schedule::CudaStage& stage, bool made);

// The operand that a stage caches in shared memory, if an asynchronous copy can load it; otherwise null.
const schedule::CachedValue* copied_operand(SweepContext& c, const schedule::CudaStage& stage);
void write_copy(SweepContext& c, const schedule::CudaStage& stage);
// Loads the copied operand from shared memory. The loaded value replaces the operand in expressions until drop_copy().
void use_copy(SweepContext& c, const schedule::CudaStage& stage);
void drop_copy(SweepContext& c, const schedule::CudaStage& stage);

}  // namespace heddle::codegen
