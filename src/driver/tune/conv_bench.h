#pragma once

#include <cstdint>
#include <vector>

#include "driver/tune/group_bench.h"
#include "heddle/dtype.h"

namespace heddle::driver {

// relu(convolution) of images [batch, extents..., channels] with one to three spatial dimensions, or relu(product) of a
// matrix [rows, channels]. If `out` is above 0, a second contraction with relu follows in the same kernel: a 1x1
// convolution or a product, with `out` output channels.
struct ConvProblem {
  // One value per spatial dimension of the image.
  using Extents = std::vector<int64_t>;

  DType type = DType::kF16;  // kF16, kBF16 or kF32
  int64_t rows = 0;          // above 0: the problem is a product with that many rows
  int64_t batch = 1, channels = 1, filters = 1, groups = 1, out = 0;
  Extents image = {1, 1}, window = {3, 3}, stride = {1, 1}, dilation = {1, 1};
  // Zeros before and after the image. If transposed, zeros have first been inserted between its elements (`stride`).
  Extents before = {1, 1}, after = {1, 1};
  // A transposed convolution: strides apply to the result, by inserting zeros between image elements.
  bool transposed = false;

  // The extent of the dilated window.
  int64_t span(size_t d) const { return (window[d] - 1) * dilation[d] + 1; }
  // The extent of the image including all zeros.
  int64_t padded(size_t d) const { return (image[d] - 1) * (transposed ? stride[d] : 1) + 1 + before[d] + after[d]; }
  int64_t result(size_t d) const { return (padded(d) - span(d)) / (transposed ? 1 : stride[d]) + 1; }
  int64_t results() const;  // per output channel, over all images
  double operations() const;
};

// The tuning problem for the kernels of a convolution, as in a model, or for two contractions in one kernel.
GroupProblem conv_problem(const ConvProblem& problem, const Target& target);

}  // namespace heddle::driver
