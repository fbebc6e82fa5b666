#pragma once

#include <cstdint>

#include "driver/tune/group_bench.h"
#include "heddle/dtype.h"

namespace heddle::driver {

// relu(convolution) of images [batch, height, width, channels], "same" padding of a square window, or of a matrix
// [rows, channels]: relu(product). With `out` above 0, what it makes goes through relu(1x1 convolution or product),
// back to back in one kernel.
struct ConvProblem {
  DType type = DType::kF16;  // or bf16
  int64_t rows = 0;          // above 0: a product
  int64_t batch = 1, height = 1, width = 1, channels = 1;
  int64_t filters = 1, window = 1, stride = 1, groups = 1;
  int64_t out = 0;

  int64_t out_height() const { return (height - 1) / stride + 1; }
  int64_t out_width() const { return (width - 1) / stride + 1; }
  int64_t results() const { return rows > 0 ? rows : batch * out_height() * out_width(); }  // without columns
  double operations() const;
};

// Throws kInvalidArgument on sizes that make none.
GroupProblem conv_problem(const ConvProblem& problem);

}  // namespace heddle::driver
