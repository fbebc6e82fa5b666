#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heddle/ops.h"
#include "schedule/product/cuda/contraction.h"

namespace heddle::driver {

struct GemmBenchOptions {
  int device = 0;
  int most = 8;        // candidates to compile and time, best prediction first; 0: all
  std::string family;  // only candidates of this algorithm ("sm90", "mma"...); empty: of all
  int repeats = 21;    // of each candidate, then of the winner and the library in turn
  bool verify = false;
  bool library = true;  // compare with cuBLASLt if it is installed
  bool use_cache = true;
  bool store = true;  // store the winner in the tuner's database
  uint64_t seed = 1;
};

struct GemmTiming {
  schedule::CudaCandidate candidate;
  double median_us = 0;  // of the graph launch, L2 cold; 0: not timed
  double error = -1;     // |D - reference| over the bound for its types; correct if <= 1; -1: not verified
  int samples = 0;
  bool dropped = false;  // clearly slower, so it had fewer runs than the others
  double compile_seconds = 0;
  bool from_cache = false;
  std::string failure;  // why it was not timed or is wrong
};

struct GemmBenchResult {
  ops::GemmProblem problem;  // resolved
  std::string device;
  double operations = 0, floor_us = 0, empty_graph_us = 0;
  std::vector<GemmTiming> timings;                           // in the order of predictions
  int best = -1, pick = -1;                                  // fastest; the cost model's first that runs; -1: none
  double best_us = 0, library_us = 0, library_first_us = 0;  // alternating in one run; 0: not measured
  int library_algorithms = 0;
  std::string library_why;
  bool verified = true;  // no candidate failed
};

// Compiles the kernels that bench_gemm() will need for these problems into the cache, on all cores at once. Compilation
// errors are left to bench_gemm().
void compile_ahead(const std::vector<ops::GemmProblem>& problems, const GemmBenchOptions& options);

// Compiles and times the candidates for a problem on a GPU. Throws kDevice without a GPU, and what the JIT throws.
GemmBenchResult bench_gemm(const ops::GemmProblem& problem, const GemmBenchOptions& options);

}  // namespace heddle::driver
