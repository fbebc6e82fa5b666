#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/group.h"
#include "schedule/config/config.h"
#include "schedule/kernel_desc.h"
#include "target/target.h"
#include "tune/tuner.h"

namespace heddle::driver {

// An operator to measure, as the groups of kernels that compute it. Used by `heddle kernel attention|conv|b2b`.
struct GroupProblem {
  ir::Graph graph;
  std::vector<ir::Group> groups;             // in the order of execution
  std::map<ir::ValueId, ir::ValueId> views;  // from a view to the value whose memory it shares
  double operations = 0;
  // The largest error over a sample of the result's elements, divided by the error bound of the type. `trial` holds the
  // operands and the result.
  std::function<double(const GroupProblem& problem, const tune::GroupTrial& trial)> error;

  // The value whose memory holds the graph's result.
  ir::ValueId result() const { return memory_of(graph.outputs()[0].value); }
  ir::ValueId memory_of(ir::ValueId value) const;
};

// Makes the whole graph one group of kind `kind`.
GroupProblem group_problem(ir::Graph graph, ir::GroupKind kind);
// Parses the IR in `text`, runs all passes and groups the graph as in a model. Throws kUnsupportedOperator if there is
// no kernel for a group.
GroupProblem compiled_problem(const std::string& text, const Target& target);

// The elements of an operand as doubles. The operand is a constant or random data of a trial.
std::vector<double> operand_values(const ir::Graph& graph, ir::ValueId value, const tune::GroupTrial& trial);
// Returns at most `most` of the indices 0 to count - 1. They are evenly spread, in no particular order, and include the
// first and the last index.
std::vector<int64_t> sampled(int64_t count, int64_t most);
// Returns the larger of `error` and |got - want| / bound. NaN counts as larger than any number.
double larger_error(double error, double got, double want, double bound);

// A candidate for a problem: its kernels with one particular configuration of the most expensive group. Every other
// group uses the configuration of the same name if the group has one, else the choice of the cost model.
struct GroupCandidate {
  schedule::Config config;
  schedule::ScheduledGroup kernels;
  double predicted_us = 0;  // sum over the kernels that have a cost model; 0: none has one
};

struct GroupBenchOptions {
  int device = 0;
  int repeats = 21;
  bool verify = false;
};

struct GroupTiming {
  schedule::Config config;
  double predicted_us = 0;
  double median_us = 0;  // with cold caches; on a GPU, of a CUDA-graph launch; 0: not timed
  int samples = 0;
  std::string failure;  // why there is no timing or the result is wrong; "" if all is well
};

struct GroupBenchResult {
  std::string device;
  std::vector<GroupTiming> timings;  // in the order of the candidates
  int best = -1;                     // index of the fastest; -1: no candidate runs
  double floor_us = 0;               // lower bound for the fastest, from its kernels' arithmetic and memory
  double error = -1;                 // GroupProblem::error for the fastest; -1: not verified
};

// Returns candidates, with the cost model's choice first. Needs no device. Returns at most `most` (0: all) of the
// candidates whose reason contains `only`. Throws kUnsupportedOperator if there is no kernel for a group, and
// kInvalidArgument if there is no candidate.
std::vector<GroupCandidate> group_candidates(const GroupProblem& problem, const Target& target, int most,
                                             const std::string& only);
// The source text of a candidate's kernels.
std::string group_unit(const GroupCandidate& candidate, const Target& target);
// Returns one line of text for each kernel of a candidate whose predicted time exceeds KernelTimes::kFar times the
// kernel's lower bound.
std::vector<std::string> far_kernels(const GroupProblem& problem, const GroupCandidate& candidate,
                                     const Target& target);

// Compiles and times the candidates on the device of `target`. With options.verify, compares the result of the fastest
// with a float64 reference. Throws kDevice if this machine lacks the device. Errors of the JIT are passed on.
GroupBenchResult bench_group(const GroupProblem& problem, std::vector<GroupCandidate> candidates, const Target& target,
                             const GroupBenchOptions& options);

}  // namespace heddle::driver
