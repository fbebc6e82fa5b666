#pragma once

#include <cstdint>

#include "driver/tune/group_bench.h"
#include "heddle/dtype.h"

namespace heddle::driver {

// softmax(Q K^T / sqrt(depth)) V: Q is [batch, heads, m, depth], K [batch, kv_heads, n, depth] and V [batch, kv_heads,
// n, width], dense.
struct AttentionProblem {
  DType type = DType::kF16;  // or bf16, f32
  bool tf32 = false;         // f32 may be rounded to tf32
  int64_t batch = 1, heads = 1, kv_heads = 1, m = 1, n = 1, depth = 64, width = 64;
  bool causal = false;  // a query sees keys up to its own position; the last query has the last key's position
  int64_t window = 0;   // above 0: causal, and a query sees only its last `window` keys
  int64_t prefix = 0;   // above 0: causal, but every query sees the first `prefix` keys; not with `window`
  int64_t page = 0;     // keys per page of K and V: [pages, page, kv_heads, depth], pages in any order; 0: dense

  // Returns the physical page of logical page i. Logical pages are numbered consecutively through all sequences.
  int64_t page_at(int64_t i) const;
  int64_t pages() const;  // of all sequences

  // Returns the number of pairs of a query and a key that the query sees. Plain causal attention counts as half of all
  // pairs, as in published results.
  double pairs() const;
  double operations() const { return 2 * pairs() * static_cast<double>(depth + width); }
};

// Throws kInvalidArgument if the sizes are invalid.
GroupProblem attention_problem(const AttentionProblem& problem);

}  // namespace heddle::driver
