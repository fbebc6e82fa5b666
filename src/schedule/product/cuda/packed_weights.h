#pragma once

#include <optional>
#include <string>

#include "schedule/product/contraction_builder.h"
#include "schedule/product/cuda/desc.h"
#include "schedule/product/dot_problem.h"

namespace heddle::schedule {

// The operand of a dot, 0 or 1, that its group dequantises from packed weights of few bits.
std::optional<size_t> packed_side(const ContractionBuilder& builder);

// Makes `o` the view of packed weights, which are B of the problem, and adds their operands to the builder. Returns
// false if no kernel reads such weights in packed form.
bool read_packed_weights(ContractionBuilder& builder, const DotProblem& problem, const Product& product,
                         OperandView& o);

// True if a product should read its weights of few bits in packed form, as the group `packed` does. False if it should
// read them as floats, as the group `widened` does: they are widened when the plan is made (passes/quantized). `reason`
// receives the predicted times.
bool pays_to_read_packed(const ir::Graph& graph, const ir::Group& packed, const ir::Group& widened,
                         const Target& target, std::string* reason);

}  // namespace heddle::schedule
