#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lang/cpu/loops.h"

namespace heddle::lang::cpu {

// Context for writing sinks: ops that are written at their place instead of in the loop of an op that needs their
// result.
struct SinkContext {
  State& state;
  Loops& loops;
  Writer* out;
  // Writes the ops of a region with scalar arguments; returns the names of the values that it yields.
  std::function<std::vector<std::string>(const Region& region, const std::vector<std::string>& arguments)> run_region;
};

// Adds a comment with the op's place in the source, if it has one.
void add_place(SinkContext& context, const Op& op);

// Each writes `op` if it is of that kind, else returns false.
bool write_memory_op(SinkContext& context, const Op& op);
bool write_axis_op(SinkContext& context, const Op& op);
bool write_product_op(SinkContext& context, const Op& op);
bool write_effect_op(SinkContext& context, const Op& op);

}  // namespace heddle::lang::cpu
