#pragma once

#include <cmath>
#include <numbers>
#include <string_view>

#include "zoo/graph_builder.h"

// Layers of neural networks, built with GraphBuilder. Each layer has the form that PyTorch's exporters write. Random
// weights are scaled so that `gain` is the root mean square of a layer's output divided by that of its input. Use kRelu
// before a rectifier, which halves the mean square, and a value below 1 at the end of a residual branch.
namespace heddle::zoo {

inline constexpr double kRelu = std::numbers::sqrt2;
inline constexpr double kBranch = 0.5;  // gain at the end of a residual branch

struct Conv {
  int64_t out;
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t pad = 0;
  int64_t groups = 1;
  bool bias = true;
  double gain = kRelu;
};
Value conv(GraphBuilder& g, std::string_view name, const Value& x, const Conv& options);

// Batch normalisation in inference form, with running statistics. `gain` scales the output.
Value batch_norm(GraphBuilder& g, std::string_view name, const Value& x, double gain = 1.0);

struct Pool {
  int64_t kernel_h, kernel_w;
  int64_t stride_h, stride_w;
  int64_t pad_h = 0, pad_w = 0;
};
Value max_pool(GraphBuilder& g, const Value& x, const Pool& pool);
Value average_pool(GraphBuilder& g, const Value& x, const Pool& pool);
Value global_average_pool(GraphBuilder& g, const Value& x);
// [n,c,h,w] -> [n,c*h*w]
Value flatten(GraphBuilder& g, const Value& x);

// y = x w + b over the last axis: a Gemm for rank 2, a MatMul and an Add for higher ranks.
Value linear(GraphBuilder& g, std::string_view name, const Value& x, int64_t out, double gain = 1.0, bool bias = true);
// Two convolutions of three by three with group normalisations before them, beside a shortcut. `shift` [n,c], if any,
// is projected and added between the convolutions.
Value res_block(GraphBuilder& g, std::string_view name, const Value& x, const Value* shift, int64_t out);
// Doubles height and width by repetition.
Value upsample(GraphBuilder& g, const Value& x);
// Looks up rows of a table [rows,width] of random weights with the given standard deviation.
Value embedding(GraphBuilder& g, std::string_view name, const Value& indices, int64_t rows, int64_t width,
                double deviation);

// Layer normalisation: one operator from opset 17 on, otherwise a chain of ReduceMean, Sub, Pow, Sqrt and Div.
Value layer_norm(GraphBuilder& g, std::string_view name, const Value& x, float epsilon = 1e-5F);
// x / the root mean square over the last axis, times a weight (Zhang and Sennrich 2019), as a chain of operators.
Value rms_norm(GraphBuilder& g, std::string_view name, const Value& x, float epsilon = 1e-6F);
// Group normalisation as a chain: Reshape, InstanceNormalization, Reshape, Mul, Add.
Value group_norm(GraphBuilder& g, std::string_view name, const Value& x, int64_t groups);

// x * (1 + erf(x / sqrt 2)) / 2
Value gelu(GraphBuilder& g, const Value& x);
// GELU approximated with tanh (Hendrycks and Gimpel 2016).
Value gelu_tanh(GraphBuilder& g, const Value& x);
// x * sigmoid(x)
Value silu(GraphBuilder& g, const Value& x);

// split_heads() maps [n,t,heads*c] to [n,heads,t,c]; merge_heads() is the inverse.
Value split_heads(GraphBuilder& g, const Value& x, int64_t heads);
Value merge_heads(GraphBuilder& g, const Value& x);
// A causal mask [t,s]: 0 on and below the diagonal, where row t may attend to column s; minus infinity above it.
Value causal_mask(GraphBuilder& g, int64_t t, int64_t s);

struct Attention {
  int64_t heads;
  bool causal = false;
  bool dynamic_shapes = false;  // splits heads by Shape - Gather - Concat chains, divides scores by a square root
  bool bias = true;             // of the projections of queries, keys and values
  double gain = 1.0;            // of the output projection
};
// Multi-head attention of x [n,t,d] over memory [n,s,c] (memory = x for self-attention). The result is [n,t,d].
Value attention(GraphBuilder& g, std::string_view name, const Value& x, const Value& memory, const Attention& options);
// Attention of q [n,heads,t,c], k [n,heads,c,s] (already transposed) and v [n,heads,s,c]. Returns the merged heads
// [n,t,heads*c].
Value scaled_dot_product(GraphBuilder& g, const Value& q, const Value& k, const Value& v, const Attention& options);

}  // namespace heddle::zoo
