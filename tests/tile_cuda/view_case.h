// Products of matrices and images for the kernels over views, with their operands as text.
#pragma once

#include <algorithm>
#include <array>

#include "codegen/product/cuda/operand.h"
#include "schedule/product/cuda/tile.h"

namespace heddle::testing_cuda {

// `rows` x k elements of D's rows or columns, `batch` of them. Strides in elements.
struct Matrix {
  DType element = DType::kF16;
  int64_t rows = 0, k = 0, batch = 1;
  bool along_k = true;
  int64_t leading = 0;  // from row to row, or where rows are contiguous from k to k
  int64_t stride = 0;   // from batch to batch

  schedule::OperandView view(uint32_t operand) const {
    schedule::OperandView o;
    o.dtype = element, o.operand = operand;
    if (batch > 1) o.batch = {{batch, stride}};
    o.row = along_k ? leading : 1, o.k = along_k ? 1 : leading, o.depth = k;
    return o;
  }
};

// Images, channels last, of a convolution; channels are those of one group.
struct Image {
  DType element = DType::kF16;
  int64_t images = 1, channels = 1, groups = 1;
  std::array<int64_t, 3> size{1, 1, 1}, window{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<int64_t, 3> before{}, after{};  // padding

  int64_t out(size_t d) const {
    const int64_t reach = size[d] + before[d] + after[d] - (window[d] - 1) * dilation[d] - 1;
    return reach < 0 ? 0 : reach / stride[d] + 1;
  }
  int64_t rows() const { return images * out(0) * out(1) * out(2); }
  int64_t k() const { return window[0] * window[1] * window[2] * channels; }

  schedule::OperandView view(uint32_t operand) const {
    const auto i = [](int64_t x) { return static_cast<int32_t>(x); };
    schedule::OperandView o;
    o.form = schedule::OperandView::Form::kImage;
    o.dtype = element, o.operand = operand;
    tile::GemmImageArgs& a = o.image;
    a.group = channels, a.images = i(images), a.channels = i(channels), a.pixel = i(channels * groups);
    for (size_t d = 0; d < 3; ++d) {
      a.size[d] = i(size[d]), a.out[d] = i(out(d)), a.window[d] = i(window[d]);
      a.stride[d] = i(stride[d]), a.dilation[d] = i(dilation[d]);
      a.before[d] = i(before[d]), a.after[d] = i(after[d]);
    }
    return o;
  }
};

// A problem of the families that take operands of any layout; the others have no candidates.
struct ViewCase : schedule::TileProblem {
  codegen::OperandTexts texts;

  void set_operands(const schedule::OperandView& of_a, const schedule::OperandView& of_b) {
    const auto text_of = [&](const schedule::OperandView& o, int64_t lines, const char* name) {
      const bool image = o.form == schedule::OperandView::Form::kImage;
      return image ? codegen::image_text(o, batch) : codegen::matrix_text(o, lines, false, name);
    };
    a = traits_of(of_a, m, batch, a_in), b = traits_of(of_b, n, batch, b_in);
    a.lines = b.lines = false;
    texts = {text_of(of_a, m, "OperandA"), text_of(of_b, n, "OperandB")};
  }
};

}  // namespace heddle::testing_cuda
