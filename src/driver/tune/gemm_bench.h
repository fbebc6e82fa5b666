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
  int most = 8;        // number of candidates to compile and time, best prediction first; 0: all
  std::string family;  // only candidates of this algorithm ("sm90", "mma"...); empty: all
  int repeats = 21;    // runs of each candidate; then runs of the winner, alternating with the library
  bool verify = false;
  bool library = true;  // compare with cuBLASLt if it is installed
  bool use_cache = true;
  bool store = true;  // store the winner in the tuner's database
  uint64_t seed = 1;
};

struct GemmTiming {
  schedule::CudaCandidate candidate;
  double median_us = 0;  // of the graph launch with a cold L2; 0: not timed
  double error = -1;     // |D - reference| / error bound of the types; correct if <= 1; -1: not verified
  int samples = 0;
  bool dropped = false;  // clearly slower than the best, so it ran fewer times
  double compile_seconds = 0;
  bool from_cache = false;
  std::string failure;  // why the candidate was not timed, or why its result is wrong
};

struct GemmBenchResult {
  ops::GemmProblem problem;  // resolved
  std::string device;
  double operations = 0, floor_us = 0, empty_graph_us = 0;
  std::vector<GemmTiming> timings;  // best prediction first
  int best = -1, pick = -1;         // in `timings`: fastest; best prediction that runs; -1: none
  double best_us = 0, library_us = 0, library_first_us = 0;  // best and library: measured alternately; 0: not measured
  int library_algorithms = 0;
  std::string library_why;
  bool verified = true;  // no candidate failed
};

// Compiles the kernels that bench_gemm() will need for these problems into the cache, on all CPU cores. Compilation
// errors are ignored here; bench_gemm() reports them.
void compile_ahead(const std::vector<ops::GemmProblem>& problems, const GemmBenchOptions& options);

// Compiles and times the candidates for a problem on a GPU. Throws kDevice if there is no GPU, and what the JIT throws.
GemmBenchResult bench_gemm(const ops::GemmProblem& problem, const GemmBenchOptions& options);

}  // namespace heddle::driver
