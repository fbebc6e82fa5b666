#pragma once

#include <cstdint>
#include <vector>

#include "driver/tune/group_bench.h"
#include "heddle/dtype.h"

namespace heddle::driver {

// relu(convolution) of images [batch, extents..., channels] with one to three dimensions, or relu(product) of a matrix
// [rows, channels]. With `out` above 0, a relu(1x1 convolution or product) to `out` channels follows, back to back in
// one kernel.
struct ConvProblem {
  // One value per dimension of the image.
  using Extents = std::vector<int64_t>;

  DType type = DType::kF16;  // or bf16, f32
  int64_t rows = 0;          // above 0: a product
  int64_t batch = 1, channels = 1, filters = 1, groups = 1, out = 0;
  Extents image = {1, 1}, window = {3, 3}, stride = {1, 1}, dilation = {1, 1};
  Extents before = {1, 1}, after = {1, 1};  // zeros around the image; if transposed, around it with its zeros
  bool transposed = false;                  // strides apply to the result: zeros are put between image elements

  // The size of the dilated window.
  int64_t span(size_t d) const { return (window[d] - 1) * dilation[d] + 1; }
  // The size of the image with all its zeros.
  int64_t padded(size_t d) const { return (image[d] - 1) * (transposed ? stride[d] : 1) + 1 + before[d] + after[d]; }
  int64_t result(size_t d) const { return (padded(d) - span(d)) / (transposed ? 1 : stride[d]) + 1; }
  int64_t results() const;  // per output channel, over all images
  double operations() const;
};

// The tuning problem for the kernels of a convolution as a model has them, or of two contractions in one kernel.
GroupProblem conv_problem(const ConvProblem& problem, const Target& target);

}  // namespace heddle::driver
