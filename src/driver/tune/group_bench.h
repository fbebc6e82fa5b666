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

// An operator as the groups of kernels that compute it. `heddle kernel attention|conv|b2b` measures it.
struct GroupProblem {
  ir::Graph graph;
  std::vector<ir::Group> groups;             // in order
  std::map<ir::ValueId, ir::ValueId> views;  // values that share the memory of another value, to that value
  double operations = 0;
  // The largest error, divided by the bound of the type, over a sample of the result. `trial` holds operands and
  // result.
  std::function<double(const GroupProblem& problem, const tune::GroupTrial& trial)> error;

  // The value whose memory holds the graph's result.
  ir::ValueId result() const { return memory_of(graph.outputs()[0].value); }
  ir::ValueId memory_of(ir::ValueId value) const;
};

// The whole graph of a text as one group of this kind.
GroupProblem group_problem(const std::string& text, ir::GroupKind kind);
// The groups of the graph after all passes, as in a model. Throws kUnsupportedOperator if a group has no kernel.
GroupProblem compiled_problem(const std::string& text, const Target& target);

// An operand as doubles: a constant, or random data of a trial.
std::vector<double> operand_values(const ir::Graph& graph, ir::ValueId value, const tune::GroupTrial& trial);
// The indices of at most `most` of `count` elements, evenly spread, with the first and the last.
std::vector<int64_t> sampled(int64_t count, int64_t most);
// The larger of `error` and |got - want| / bound. A NaN is larger than any number.
double larger_error(double error, double got, double want, double bound);

// The kernels of a whole problem with one configuration of its most expensive group. The other groups use the
// configuration of the same name if they have it, else the one that the cost model picks.
struct GroupCandidate {
  schedule::Config config;
  schedule::ScheduledGroup kernels;
  double predicted_us = 0;  // of all kernels with a cost model; 0: none has one
};

struct GroupBenchOptions {
  int device = 0;
  int repeats = 21;
  bool verify = false;
};

struct GroupTiming {
  schedule::Config config;
  double predicted_us = 0;
  double median_us = 0;  // with cold caches; on a GPU, of the graph launch; 0: not timed
  int samples = 0;
  std::string failure;  // why it was not timed or is wrong
};

struct GroupBenchResult {
  std::string device;
  std::vector<GroupTiming> timings;  // in the order of predictions
  int best = -1;                     // fastest; -1: none runs
  double floor_us = 0;               // of the fastest: lower bound from arithmetic and memory of its kernels
  double error = -1;                 // GroupProblem::error of the fastest; -1: not verified
};

// The candidates of the cost model, its pick first, without a device. At most `most` (0: all) of those whose reason
// contains `only`. Throws kUnsupportedOperator if a group has no kernel, kInvalidArgument if there is no candidate.
std::vector<GroupCandidate> group_candidates(const GroupProblem& problem, const Target& target, int most,
                                             const std::string& only);
// The source text of a candidate's kernels.
std::string group_unit(const GroupCandidate& candidate, const Target& target);
// One line for each kernel of a candidate whose predicted time exceeds KernelTimes::kFar times its floor.
std::vector<std::string> far_kernels(const GroupProblem& problem, const GroupCandidate& candidate,
                                     const Target& target);

// Compiles and times candidates on the device of the target, and compares the fastest with float64. Throws kDevice if
// there is no such device, and what the JIT throws.
GroupBenchResult bench_group(const GroupProblem& problem, std::vector<GroupCandidate> candidates, const Target& target,
                             const GroupBenchOptions& options);

}  // namespace heddle::driver
