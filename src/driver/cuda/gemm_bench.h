#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codegen/cuda_gemm.h"
#include "schedule/cuda_gemm.h"

namespace heddle::driver {

struct GemmBenchOptions {
  int ordinal = 0;
  std::string epilogue;  // CudaEpilogue::parse(); its operands have D's type
  int most = 8;          // candidates that are compiled and timed, best prediction first; 0: all
  int repeats = 21;
  bool verify = false;
  bool library = true;  // cuBLASLt beside it, where it is installed
  bool use_cache = true;
  uint64_t seed = 1;
  std::function<void(int done, int count)> progress;
};

struct GemmTiming {
  schedule::CudaGemmCandidate candidate;
  double median_us = 0;  // of the graph launch, L2 cold; 0: not timed
  double error = -1;     // |D - reference| over the bound for its types; at most 1 is right; -1: not verified
  double compile_seconds = 0;
  bool from_cache = false;
  std::string failure;  // why it was not timed
};

struct GemmBenchResult {
  schedule::CudaGemmProblem problem;
  std::string device;
  double floor_us = 0, empty_graph_us = 0;
  std::vector<GemmTiming> timings;  // as predicted; those that were timed and right are ranked by `best`
  int best = -1, pick = -1;         // fastest; the model's first that runs; -1: none
  double best_us = 0, library_us = 0, library_first_us = 0;  // alternating in one run; 0: not measured
  int library_algorithms = 0;
  std::string library_why;
  bool verified = true;  // every timed candidate, where that was asked for
};

// Compiles and times the candidates for a problem on a GPU. Throws kDevice without one, and what the jit throws.
GemmBenchResult bench_gemm(const schedule::CudaGemmProblem& problem, const GemmBenchOptions& options);

// An element of D in double: epilogue(sum over k), from operands as they are stored.
struct GemmReference {
  const schedule::CudaGemmProblem& problem;
  const codegen::CudaEpilogue& epilogue;
  const void *a, *b;
  const std::vector<std::vector<uint8_t>>& extra;  // the epilogue's operands
  // The value, and in `magnitude` the sum of |a b|, which bounds the rounding error.
  double at(int64_t batch, int64_t row, int64_t col, double& magnitude) const;
};

}  // namespace heddle::driver
