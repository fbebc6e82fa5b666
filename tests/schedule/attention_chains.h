#pragma once

#include <random>
#include <string>

#include "ir/builder.h"
#include "ir/group.h"
#include "passes/pass.h"

namespace heddle::testing {

// Attention as models write it: a choice for each place in which they differ.
struct AttentionChain {
  enum class Keys { kHeads, kSequence, kFlat };  // [b,h,n,d] transposed; [b,n,h,d] to [b,h,d,n]; through rank 3
  enum class Scale { kNone, kScores, kQuotient, kQuery, kBoth, kBehindMaximum };
  enum class Groups { kExpand, kBroadcast, kFreeDims };
  enum class Mask {
    kNone,
    kAddPadding,     // float [b,1,1,n] is added
    kAddMatrix,      // float [b,1,m,n] is added
    kSelectMin,      // Where(mask, s, min)
    kSelectInf,      // Where(mask, s, -inf)
    kSelectThenAdd,  // s + Where(mask, 0, min)
    kCausal,         // positions compared, -inf
    kCausalMin,      // positions and a padding mask, finite
    kAddCausal,      // s + Where(positions compared, 0, -inf)
    kAddCausalMin,   // the same, finite
    kTriangle,       // a constant
    kRows,           // whole rows, finite
    kLengths,        // causal, aligned with the end of as many keys as memory says, -inf; not in random chains
  };
  enum class Softmax {
    kPlain,
    kReciprocal,    // e * (1 / sum)
    kUnshifted,     // without the maximum
    kLog,           // exp(x - log sum)
    kBehind,        // e V / sum
    kBehindFactor,  // e V * (1 / sum)
    kIsNan,         // Where(IsNaN(p), 0, p)
    kNotEqual,      // Where(p != p, 0, p)
    kAllHidden,     // Where(All(x == -inf), 0, p)
    kMaxHidden,     // Where(max == -inf, 0, p)
  };
  DType type = DType::kF16;
  int64_t batch = 2, heads = 4, groups = 4, m = 12, n = 16, depth = 16, width = 16;
  Keys keys = Keys::kHeads;
  Scale scale = Scale::kScores;
  Groups shared = Groups::kExpand;  // where there are fewer groups than heads
  Mask mask = Mask::kNone;
  Softmax softmax = Softmax::kPlain;
  bool casts = true;    // scores are f32
  bool packed = false;  // q, k and v are slices of one value (m = n, depth = width, groups = heads)
  bool norm = false;    // q and k are normalised
  bool cap = false, bias = false, slopes = false, windows = false, sink = false, swapped = false;

  // Whether a row may have no key at all, so that a guard matters.
  bool guarded() const { return softmax >= Softmax::kIsNan; }
  std::string text() const;
  ir::Graph graph() const;
};

// Any combination that has a meaning.
AttentionChain random_chain(std::mt19937& random);

// The graph after all passes.
ir::Graph optimized(const ir::Graph& graph, passes::Precision precision, const Target& target = Target::cuda_h200(1));
// Its groups as the driver makes them; or with attention in one kernel wherever there is one, whatever it costs.
ir::Grouping grouped(const ir::Graph& graph, const Target& target, bool at_any_cost = false);

// A group as a graph of its own; parameters are named after the model's where they are its own.
ir::Graph graph_of(const ir::Graph& graph, const ir::Group& group);

}  // namespace heddle::testing
