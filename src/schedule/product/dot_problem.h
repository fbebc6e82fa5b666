#pragma once

#include <string>
#include <vector>

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// A dimension of a dot with the strides of both operands (0 where an operand does not have it).
struct DotDim {
  int64_t extent, a, b;
};

// A dot as a batched matrix product: D[batch, m, n] = sum over k of A[batch, m, k] B[batch, k, n]. Dimensions that lie
// one behind the other in both operands are joined, those of extent 1 left out; batch dimensions that only A has become
// rows where rows stay one stride apart.
class DotProblem {
 public:
  // `allow_swap`: where there are few columns and many rows, A and B change places, and D is transposed.
  DotProblem(ContractionBuilder& builder, bool allow_swap);

  std::vector<DotDim> batch, m, n, k;
  // Whether an operand is a strided view of `a_view.value`; else its strides above are void.
  bool a_affine = true, b_affine = true;
  View a_view, b_view;
  bool swapped = false;

  static int64_t count(const std::vector<DotDim>& dims);
  double operations() const;
  // "gemm 12x128x128x64"
  std::string label() const;

  // An operand's element at (batch, row of A or column of B, k), through the prologue, loads counted as operands.
  ExprId element(ExprPool& pool, bool is_a, const Index& batch_at, const Index& line, const Index& k_at) const;
  // The indices of the dot's result at (batch, row, column).
  std::vector<Index> coordinates(IndexPool& pool, const Index& batch_at, const Index& row, const Index& column) const;

 private:
  // The operands by their dimensions: for each operand, which of its dimensions each loop of the problem is.
  struct Roles {
    std::vector<int64_t> batch[2], free[2], contract[2];
  };
  static Roles roles_of(const ir::Graph& graph, const ir::Node& node);

  void make_dims();
  void fold_batches();
  size_t side_of(bool is_a) const { return is_a != swapped ? 0 : 1; }
  const Shape& shape_of(size_t side) const;
  Shape pick(size_t side, const std::vector<int64_t>& dims) const;
  std::vector<Index> batch_index(IndexPool& pool, const Index& at, const Index* row) const;
  std::vector<Index> line_index(IndexPool& pool, bool is_a, const Index& line) const;

  ContractionBuilder& builder_;
  const ir::Node& node_;
  Roles roles_;
  size_t folded_ = 0;  // innermost batch dimensions that became rows
};

}  // namespace heddle::schedule
