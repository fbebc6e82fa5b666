#pragma once

#include <string>
#include <vector>

#include "testing.h"

namespace heddle::testing {

// softmax(scores(Q K^T)) V as text.
struct AttentionProblem {
  std::string type = "f16";  // "bf16", "f32", "tf32": f32 that may be rounded to it
  int64_t batch = 1, heads = 2, m = 64, n = 64, depth = 64, width = 64;
  std::string scores = "scaled";  // "plain", "scaled", "mask", "rows", "causal", "finite" (causal by -3e38),
                                  // "window" (causal, 40 keys), "triangle" (causal by a constant), "few" (keys of a
                                  // batch, by a constant), "biased" (causal), "length" (keys of a batch, as many as
                                  // memory says), "past" (causal behind them)
  std::string layout = "heads";   // "heads", "dense", "sliced" (m = n, depth = width), "keys": K and V along keys,
                                  // "shared": all heads have the same K and V, "pages": in pages of a pool
  bool quotient = false;          // exp / sum in place of exp * (1 / sum)
  int64_t page = 64;              // "pages": keys of one
  int64_t kv_heads = 0;           // "pages": heads of K and V that those of Q share; 0: each has its own
};
std::string attention_text(const AttentionProblem& problem);

// Lengths of one, of less and of more than a tile, and of whole tiles, with heads of many sizes.
std::vector<AttentionProblem> attention_sizes();

// The graph as one attention group of a batch.
void add_attention(CudaBatch& batch, const AttentionProblem& problem, CudaBatch::Options options = {});

}  // namespace heddle::testing
