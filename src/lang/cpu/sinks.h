#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lang/cpu/loops.h"

namespace heddle::lang::cpu {

// What the ops are written with that cannot wait for who needs their results.
struct SinkContext {
  State& state;
  Loops& loops;
  Lines* out;
  // Writes the ops of a region whose arguments are scalars; the names of what it yields.
  std::function<std::vector<std::string>(const Region& region, const std::vector<std::string>& arguments)> run_region;
};

// Adds the comment that names the place of the op in the source, if it has one.
void add_place(SinkContext& context, const Op& op);

// False: the op is none of these.
bool write_memory_op(SinkContext& context, const Op& op);
bool write_axis_op(SinkContext& context, const Op& op);
bool write_product_op(SinkContext& context, const Op& op);
bool write_effect_op(SinkContext& context, const Op& op);

}  // namespace heddle::lang::cpu
