#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/dtype.h"
#include "schedule/config/config.h"
#include "target/target.h"

namespace heddle::driver {

// softmax(Q K^T / sqrt(depth)) V: Q is [batch, heads, m, depth], K and V are [batch, kv_heads, n, depth], dense.
struct AttentionProblem {
  DType type = DType::kF16;  // or bf16
  int64_t batch = 1, heads = 1, kv_heads = 1, m = 1, n = 1, depth = 64;
  bool causal = false;  // a query sees the keys up to its own; the last query has the last key
  int64_t window = 0;   // causal, and only so many keys; 0: all

  // Pairs of a query and a key that it sees, of causal attention half of all, as results are quoted.
  double pairs() const;
  double operations() const { return 4 * pairs() * static_cast<double>(depth); }
};

struct AttentionBenchOptions {
  int device = 0;
  int most = 8;  // candidates that are compiled and timed, best prediction first
  int repeats = 21;
  bool verify = false;
};

struct AttentionTiming {
  schedule::Config config;
  double median_us = 0;  // of the graph launch, L2 cold; 0: not timed
  int samples = 0;
  std::string failure;  // why it was not timed, or is wrong
};

struct AttentionBenchResult {
  std::string device;
  std::vector<AttentionTiming> timings;  // as predicted
  int best = -1;                         // fastest; -1: none runs
  double error = -1;                     // |O - reference| over the bound of its type on some rows; -1: not verified
};

// The model's candidates, least predicted time first, without a GPU. Throws kInvalidArgument on sizes that make no
// attention, kUnsupportedOperator where the kernel does not serve them.
std::vector<schedule::Config> attention_configs(const AttentionProblem& problem, const Target& target);
// Their kernels' text for a GPU, one a candidate.
std::string attention_unit(const AttentionProblem& problem, const schedule::Config& config, const Target& target);

// Compiles and times candidates on a GPU; the fastest is compared with float64 on some rows. Throws kDevice without a
// GPU, and what the jit throws.
AttentionBenchResult bench_attention(const AttentionProblem& problem, const AttentionBenchOptions& options);

}  // namespace heddle::driver
