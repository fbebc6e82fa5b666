#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Computes an f32 model in tf32, f16 or bf16 (context.precision, which must not be f32). For tf32, on a GPU only, f32
// contractions get the attribute `tf32`, so that kernels may round their operands to it. For 16 bits the rule depends
// on the node:
// - Contractions take 16-bit operands and accumulate in f32 (as `dot` and `conv` always do). Their result is 16-bit, or
//   f32 (`out`) if only sensitive nodes read it.
// - Sensitive nodes stay f32: reductions, scans, sums over windows, transcendental functions, division and power.
// - Other elementwise, layout and indexing nodes follow their operands: f32 if one of them comes from a sensitive node,
//   16-bit otherwise. They are also f32 if all their readers are sensitive.
// - Operands of contractions are rounded to 16 bits once, for all of their readers.
// - Parameters and results keep their types. Loops, branches and calls see f32; their bodies are rewritten separately.
ir::Graph precision(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
