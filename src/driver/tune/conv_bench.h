#pragma once

#include <cstdint>
#include <vector>

#include "driver/tune/group_bench.h"
#include "heddle/dtype.h"

namespace heddle::driver {

// relu(convolution) of images [batch, extents..., channels] of one to three dimensions, or of a matrix [rows,
// channels]: relu(product). With `out` above 0, what it makes goes through relu(1x1 convolution or product), back to
// back in one kernel.
struct ConvProblem {
  // What has a value for each dimension of the image.
  using Extents = std::vector<int64_t>;

  DType type = DType::kF16;  // or bf16, f32
  int64_t rows = 0;          // above 0: a product
  int64_t batch = 1, channels = 1, filters = 1, groups = 1, out = 0;
  Extents image = {1, 1}, window = {3, 3}, stride = {1, 1}, dilation = {1, 1};
  Extents before = {1, 1}, after = {1, 1};  // zeros around the image, or of the image with zeros between its elements
  bool transposed = false;                  // strides are steps of the result: zeros between elements of the image

  // Of the dilated window.
  int64_t span(size_t d) const { return (window[d] - 1) * dilation[d] + 1; }
  // Of the image with all its zeros.
  int64_t padded(size_t d) const { return (image[d] - 1) * (transposed ? stride[d] : 1) + 1 + before[d] + after[d]; }
  int64_t result(size_t d) const { return (padded(d) - span(d)) / (transposed ? 1 : stride[d]) + 1; }
  int64_t results() const;  // without columns
  double operations() const;
};

// Of the candidates of a convolution's kernels as a model has them, or of two contractions as one kernel.
GroupProblem conv_problem(const ConvProblem& problem, const Target& target);

}  // namespace heddle::driver
