#pragma once

#include "schedule/product/contraction.h"

namespace heddle::schedule {

// Throws kUnsupportedOperator: no back-to-back kernel can do it.
[[noreturn]] void refuse_back_to_back(const std::string& why);

// A group of kind kBackToBack as two groups (passes/fusion/README.md): D1 = g(D0 W1), D0 = f(A W0). Both can be
// scheduled alone; the first one's only result, `inner`, is what the second one multiplies, through the views of its
// prologue, and nobody else reads it. The second one has one contraction, the first one may be such a group itself.
struct BackToBackForm {
  ir::Group first, second;
  ir::ValueId inner = 0;
};

// Throws kUnsupportedOperator where the second contraction needs more of D0 than a row for a row of D1, and is no
// depthwise convolution either: where it is a convolution of larger windows or of groups, or neither a dot nor a
// convolution.
BackToBackForm back_to_back_form(const ir::Graph& graph, const ir::Group& group);

// Where element (batch, row, column) of a matrix lies: `offset` and strides.
struct MatrixPlace {
  int64_t offset = 0, batch = 0, row = 0, column = 0;
  bool operator==(const MatrixPlace&) const = default;
};

// Throws kUnsupportedOperator unless the matrix that a first contraction stores, of these sizes, is the one that the
// second multiplies, `read` being where that finds (batch, row, k): then a row of D1 needs the same row of D0.
void check_rows(const Epilogue& first, int64_t batches, int64_t rows, int64_t columns, const MatrixPlace& read);

}  // namespace heddle::schedule
