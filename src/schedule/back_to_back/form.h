#pragma once

#include "schedule/product/contraction.h"

namespace heddle::schedule {

// Throws kUnsupportedOperator, since no back-to-back kernel can compute this.
[[noreturn]] void refuse_back_to_back(const std::string& why);

// A group of kind kBackToBack as two groups (passes/fusion/README.md): D1 = g(D0 W1), D0 = f(A W0). Each can be
// scheduled alone. The first one's only result is `inner`. Only the second one reads it, as the operand that it
// multiplies, through the views of its prologue. The second one has one contraction; the first one may be a kBackToBack
// group itself.
struct BackToBackForm {
  ir::Group first, second;
  ir::ValueId inner = 0;
};

// Throws kUnsupportedOperator unless a row of D1 needs only one row of D0 or the second contraction is a depthwise
// convolution. This excludes convolutions with larger windows or groups, and anything that is neither a dot nor a
// convolution.
BackToBackForm back_to_back_form(const ir::Graph& graph, const ir::Group& group);

// Location of element (batch, row, column) of a matrix: `offset` and strides.
struct MatrixPlace {
  int64_t offset = 0, batch = 0, row = 0, column = 0;
  bool operator==(const MatrixPlace&) const = default;
};

// Throws kUnsupportedOperator unless the second contraction reads the matrix that the first stores, of these sizes, at
// the same places. `read` is the location of (batch, row, k) in the second. Then a row of D1 needs only the same row of
// D0.
void check_rows(const Epilogue& first, int64_t batches, int64_t rows, int64_t columns, const MatrixPlace& read);

}  // namespace heddle::schedule
