#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/group.h"
#include "schedule/kernel_desc.h"

namespace heddle::testing {

// Reals from -1 to 1, integers from -100 to 99; half of all flags are set.
Tensor random_tensor(const ir::TensorType& type, std::mt19937& random);

// Numbers from `low` to `high`, without the latter.
Tensor random_numbers(DType dtype, Shape shape, double low, double high, std::mt19937& random);

// A graph in textual form with constants filled at random: a constant written as `constant {value = f32[2,3]{7}}` keeps
// its shape and gets fresh values.
ir::Graph parse_with_random_weights(const std::string& text, unsigned seed);

struct RunOptions {
  int threads = 1;  // of the target: decides the cut into tasks
  int pieces = 3;   // the tasks are run in so many ranges, as threads would
  CpuIsa isa = CpuIsa::kAvx512;
  ir::GroupKind kind = ir::GroupKind::kContraction;
  bool matrices = false;  // products use matrix registers, which instructions of `isa` stand in for
  unsigned choice = 0;    // the configuration: which of the candidates, round and round
};

// Schedules the graph as one group, compiles the kernels, runs them on random inputs and compares every output with the
// reference evaluation in float64. `tolerance` is relative to the magnitude of the largest result.
void check_graph(const ir::Graph& graph, double tolerance, const RunOptions& options = {});

// The kernels' algorithms and labels, for tests of decisions: "gemm gemm 4x5x6 + add".
std::vector<std::string> decisions(const ir::Graph& graph, const Target& target);

// The number in a variable of the environment.
int setting(const char* name, int otherwise);

}  // namespace heddle::testing
