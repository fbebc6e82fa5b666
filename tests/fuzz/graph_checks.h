#pragma once

#include <functional>
#include <string>

#include "passes/fusion/fusion.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/fuzz/hostile/noise.h"

namespace heddle::fuzz {

// What a case is checked for.
struct Checks {
  bool text = true;    // print, parse and print again agree
  bool passes = true;  // the pipeline keeps the graph's meaning
  bool plan = true;    // the compiled plan agrees with the reference, on one and two threads in turn
  int runs = 2;        // of each plan: more find what goes wrong now and then
  passes::FusionPolicy fusion = passes::FusionPolicy::kStitch;
  std::string target = "cpu";  // of the plan: "cpu", "cuda:N" or "hip:N"
  bool use_cache = false;      // of compiled kernels
  bool small_machine = false;  // schedule for a machine to which small graphs are large (PlanSet::add)
};

// What was done, over the cases of one call.
struct Tally {
  int64_t nodes = 0;
  int64_t judged = 0, skipped = 0;  // elements of outputs; skipped: rounding decides them
  int64_t kernels = 0, references = 0;
};

// Checks several cases, compiling their kernels at once. `begin(i, runs)` is called before case i is
// prepared (runs = false) and before its compiled code runs (true), `fail(i, why)` at most once per case; the first
// word of `why` names the check.
void check_cases(const std::vector<Case>& cases, const Checks& checks, Tally& tally,
                 const std::function<void(size_t, bool)>& begin, const std::function<void(size_t, std::string)>& fail);

}  // namespace heddle::fuzz
