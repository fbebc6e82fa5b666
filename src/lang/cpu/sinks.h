#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lang/cpu/loops.h"

namespace heddle::lang::cpu {

// Context for generating sinks. A sink is an op whose code is emitted at its position in the program, rather than in
// the loop of an op that uses its result.
struct SinkContext {
  State& state;
  Loops& loops;
  Writer* out;
  // Generates the ops of a region with scalar arguments. Returns the names of the values that the region yields.
  std::function<std::vector<std::string>(const Region& region, const std::vector<std::string>& arguments)> run_region;
};

// Emits a comment with the op's source location, if the op has one.
void add_place(SinkContext& context, const Op& op);

// Each function generates `op` and returns true if the op is of the function's kind; otherwise it returns false.
bool write_memory_op(SinkContext& context, const Op& op);
bool write_axis_op(SinkContext& context, const Op& op);
bool write_product_op(SinkContext& context, const Op& op);
bool write_effect_op(SinkContext& context, const Op& op);

}  // namespace heddle::lang::cpu
