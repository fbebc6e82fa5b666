#pragma once

#include <cstdint>

#include "driver/tune/group_bench.h"
#include "heddle/dtype.h"

namespace heddle::driver {

// softmax(Q K^T / sqrt(depth)) V: Q is [batch, heads, m, depth], K [batch, kv_heads, n, depth] and V [batch, kv_heads,
// n, width], dense.
struct AttentionProblem {
  DType type = DType::kF16;  // or bf16, f32
  bool tf32 = false;         // f32 may be rounded to it
  int64_t batch = 1, heads = 1, kv_heads = 1, m = 1, n = 1, depth = 64, width = 64;
  bool causal = false;  // a query sees the keys up to its own; the last query has the last key
  int64_t window = 0;   // causal, and only so many keys; 0: all
  int64_t prefix = 0;   // causal, and the first so many keys whatever the query; not with a window
  int64_t page = 0;     // K and V lie in pages of so many keys, [pages, page, kv_heads, depth], in any order; 0: dense

  // The page that has the i-th keys of all sequences, side by side.
  int64_t page_at(int64_t i) const;
  int64_t pages() const;  // of all sequences

  // Pairs of a query and a key that it sees, of causal attention half of all, as results are quoted.
  double pairs() const;
  double operations() const { return 2 * pairs() * static_cast<double>(depth + width); }
};

// Throws kInvalidArgument on sizes that make no attention.
GroupProblem attention_problem(const AttentionProblem& problem);

}  // namespace heddle::driver
