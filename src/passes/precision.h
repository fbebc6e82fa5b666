#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Computes an f32 model in tf32, f16 or bf16 (context.precision, which is not f32). For tf32, on a GPU only,
// contractions of f32 get the attribute `tf32`: their operands may be rounded to it. For 16 bits the rule is, by what a
// node is:
// - Contractions take 16-bit operands and accumulate in f32 (as `dot` and `conv` always do). Their result is 16-bit, or
// f32
//   (`out`) where it is read by sensitive nodes only.
// - Sensitive nodes stay f32: reductions, scans, sums over windows, everything transcendental, division and power.
// - Other elementwise, layout and indexing nodes follow their operands: f32 if one of them comes from a sensitive node,
//   16-bit otherwise; f32, too, if all that reads them is sensitive.
// - What a contraction reads is rounded to 16 bits once, for all of its readers.
// - Parameters and results keep their types; loops, branches and calls see f32 (their bodies are rewritten by
// themselves).
ir::Graph precision(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
