#pragma once

#include <functional>
#include <string>
#include <vector>

#include "driver/tune/cuda_trial.h"
#include "ir/graph.h"
#include "ir/group.h"
#include "schedule/config/config.h"
#include "target/target.h"

namespace heddle::driver {

// A graph that is one kernel: what `heddle kernel attention|conv|b2b` look at.
struct GroupProblem {
  ir::Graph graph;
  ir::Group group;
  double operations = 0;
  // The largest error of some elements of the result over the bound of its type; `trial` holds operands and result.
  std::function<double(const ir::Graph& graph, const CudaTrial& trial)> error;
};

// All of a graph given as text, as one group of this kind.
GroupProblem group_problem(const std::string& text, ir::GroupKind kind);

// An operand in double, a constant or what a trial made up.
std::vector<double> operand_values(const ir::Graph& graph, ir::ValueId value, const CudaTrial& trial);
// Which so many of `count` elements are looked at: evenly spread, the first and the last among them.
std::vector<int64_t> sampled(int64_t count, int64_t most);
// The larger of an error and |got - want| / bound; a NaN is more than any.
double larger_error(double error, double got, double want, double bound);

struct GroupBenchOptions {
  int device = 0;
  int most = 8;  // candidates that are compiled and timed, best prediction first; 0: all
  int repeats = 21;
  std::string only;  // those whose reason has this text
  bool verify = false;
};

struct GroupTiming {
  schedule::Config config;
  double median_us = 0;  // of the graph launch, L2 cold; 0: not timed
  int samples = 0;
  std::string failure;  // why it was not timed, or is wrong
};

struct GroupBenchResult {
  std::string device;
  std::vector<GroupTiming> timings;  // as predicted
  int best = -1;                     // fastest; -1: none runs
  double error = -1;                 // GroupProblem::error of the fastest; -1: not verified
};

// The model's candidates, the first one to be taken, without a GPU; at most `most` (0: all) of those whose reason has
// the text `only`. Throws kUnsupportedOperator where the group is no kernel, kInvalidArgument where there is no
// candidate.
std::vector<schedule::Config> group_configs(const GroupProblem& problem, const Target& target, int most,
                                            const std::string& only);
// The text of one's kernels for a GPU.
std::string group_unit(const GroupProblem& problem, const schedule::Config& config, const Target& target);

// Compiles and times candidates on a GPU; the fastest is compared with float64. Throws kDevice without a GPU, and what
// the jit throws.
GroupBenchResult bench_group(const GroupProblem& problem, const GroupBenchOptions& options);

}  // namespace heddle::driver
