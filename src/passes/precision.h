#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Lowers the precision of an f32 model to context.precision: tf32, f16 or bf16 (not f32). For tf32, which needs a GPU,
// f32 contractions get the attribute `tf32`, so that kernels may round their operands to tf32. For f16 and bf16, the
// rule depends on the node:
// - Contractions take 16-bit operands and accumulate in f32 (as `dot` and `conv` always do). Their result is 16-bit, or
//   f32 (`out`) if only sensitive nodes read it.
// - Sensitive nodes stay f32: reductions, scans, sums over windows, transcendental functions, division and power.
// - Other elementwise, layout and indexing nodes are f32 if an operand comes from a sensitive node or all readers are
//   sensitive; otherwise they are 16-bit.
// - Operands of contractions are rounded to 16 bits once, for all of their readers.
// - Parameters and results of the graph keep their types. Loops, branches and calls have f32 operands and results;
//   their bodies are rewritten separately.
ir::Graph precision(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
