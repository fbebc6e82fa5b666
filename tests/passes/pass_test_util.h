#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "ir/group.h"
#include "ir/reference/eval.h"
#include "ir/text/text.h"
#include "passes/pass.h"

namespace heddle::passes {

inline const Target& test_target() {
  static const Target target;
  return target;
}

inline ir::Graph run(std::string_view text, const std::vector<std::string>& names,
                     Precision precision = Precision::kF32) {
  return run_passes(ir::parse(text), names, {test_target(), precision});
}

// `in` after the passes prints as `out` prints.
inline void expect_ir(std::string_view in, const std::vector<std::string>& names, std::string_view out,
                      Precision precision = Precision::kF32) {
  const ir::PrintOptions options{.max_constant_elements = 64, .origins = false};
  EXPECT_EQ(ir::print(run(in, names, precision), options), ir::print(ir::parse(out), options));
}

// Seeded inputs: floats in [-2, 2), integers in [0, 4), bools.
std::vector<ir::Array> random_inputs(const ir::Graph& graph, uint32_t seed);

// Both graphs compute the same, up to `tolerance` relative to the largest output.
void expect_same(const ir::Graph& before, const ir::Graph& after, double tolerance = 1e-5, uint32_t seed = 1);

// Every node in one group; operands made before; inputs and outputs as src/passes/fusion/README.md says.
void check_contract(const ir::Graph& graph, const ir::Grouping& grouping);

}  // namespace heddle::passes
