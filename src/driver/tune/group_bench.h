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

// An operator as the kernels that compute it: what `heddle kernel attention|conv|b2b` look at.
struct GroupProblem {
  ir::Graph graph;
  std::vector<ir::Group> groups;             // in order
  std::map<ir::ValueId, ir::ValueId> views;  // values that lie where another one does, to that one
  double operations = 0;
  // The largest error of some elements of the result over the bound of its type; `trial` holds operands and result.
  std::function<double(const GroupProblem& problem, const tune::GroupTrial& trial)> error;

  // The value whose memory has the graph's result.
  ir::ValueId result() const { return memory_of(graph.outputs()[0].value); }
  ir::ValueId memory_of(ir::ValueId value) const;
};

// All of a graph given as text, as one group of this kind.
GroupProblem group_problem(const std::string& text, ir::GroupKind kind);
// The groups that the graph becomes in a model, after all passes. Throws kUnsupportedOperator where one of them has no
// kernel.
GroupProblem compiled_problem(const std::string& text, const Target& target);

// An operand in double, a constant or what a trial made up.
std::vector<double> operand_values(const ir::Graph& graph, ir::ValueId value, const tune::GroupTrial& trial);
// Which so many of `count` elements are looked at: evenly spread, the first and the last among them.
std::vector<int64_t> sampled(int64_t count, int64_t most);
// The larger of an error and |got - want| / bound; a NaN is more than any.
double larger_error(double error, double got, double want, double bound);

// The kernels of a whole problem with one configuration of its most expensive group. Other groups take the
// configuration of the same name where they have it, else the model's.
struct GroupCandidate {
  schedule::Config config;
  schedule::ScheduledGroup kernels;
  double predicted_us = 0;  // of all kernels that have a model; 0: none has
};

struct GroupBenchOptions {
  int device = 0;
  int repeats = 21;
  bool verify = false;
};

struct GroupTiming {
  schedule::Config config;
  double predicted_us = 0;
  double median_us = 0;  // with cold caches, on a GPU of the graph launch; 0: not timed
  int samples = 0;
  std::string failure;  // why it was not timed, or is wrong
};

struct GroupBenchResult {
  std::string device;
  std::vector<GroupTiming> timings;  // as predicted
  int best = -1;                     // fastest; -1: none runs
  double floor_us = 0;               // of the fastest: the least that arithmetic and memory of its kernels allow
  double error = -1;                 // GroupProblem::error of the fastest; -1: not verified
};

// The model's candidates, the first one to be taken, without a device; at most `most` (0: all) of those whose reason
// has the text `only`. Throws kUnsupportedOperator where a group is no kernel, kInvalidArgument where there is no
// candidate.
std::vector<GroupCandidate> group_candidates(const GroupProblem& problem, const Target& target, int most,
                                             const std::string& only);
// The text of one's kernels.
std::string group_unit(const GroupCandidate& candidate, const Target& target);
// One line for each kernel of a candidate that is predicted to take more than KernelTimes::kFar times its floor.
std::vector<std::string> far_kernels(const GroupProblem& problem, const GroupCandidate& candidate,
                                     const Target& target);

// Compiles and times candidates on the device of the target; the fastest is compared with float64. Throws kDevice
// without it, and what the jit throws.
GroupBenchResult bench_group(const GroupProblem& problem, std::vector<GroupCandidate> candidates, const Target& target,
                             const GroupBenchOptions& options);

}  // namespace heddle::driver
