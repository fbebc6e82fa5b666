#pragma once

#include "schedule/product/contraction.h"

namespace heddle::schedule {

// Throws kUnsupportedOperator: no back-to-back kernel can compute the group, for the reason `why`.
[[noreturn]] void refuse_back_to_back(const std::string& why);

// A group of kind kBackToBack, split into two groups (passes/fusion/README.md): `first` computes D0 = f(A W0), `second`
// computes D1 = g(D0 W1). Each group can be scheduled alone. D0 is `inner`, the only result of `first`. Only `second`
// reads D0: it multiplies D0 by W1, through the views of its prologue. `second` has exactly one contraction. `first`
// may itself be a kBackToBack group.
struct BackToBackForm {
  ir::Group first, second;
  ir::ValueId inner = 0;
};

// Splits a group of kind kBackToBack. Throws kUnsupportedOperator unless one row of D1 needs only one row of D0, or the
// second contraction is a depthwise convolution. So the second contraction cannot be any other convolution with groups
// or with windows of more than one pixel, nor an operator other than dot and convolution.
BackToBackForm back_to_back_form(const ir::Graph& graph, const ir::Group& group);

// The location of element (batch, row, column) of a matrix, in elements: `offset` plus the indices times the strides
// `batch`, `row` and `column`.
struct MatrixPlace {
  int64_t offset = 0, batch = 0, row = 0, column = 0;
  bool operator==(const MatrixPlace&) const = default;
};

// Checks that the second contraction reads the whole matrix that the first contraction stores, at the same locations.
// Row i of D1 then needs only row i of D0. The matrix has `batches` x `rows` x `columns` elements. `read` is
// the location of element (batch, row, k) for the second contraction. Throws kUnsupportedOperator if the check fails.
void check_rows(const Epilogue& first, int64_t batches, int64_t rows, int64_t columns, const MatrixPlace& read);

}  // namespace heddle::schedule
