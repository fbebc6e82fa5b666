#pragma once

#include <array>
#include <string>
#include <vector>

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// A dimension of a dot. `a` and `b` are its strides in the operands, 0 if an operand does not have the dimension.
struct DotDim {
  int64_t extent, a, b;
};

// Describes how a dot is mapped to a matrix product.
struct DotForm {
  // Selects the dimensions that become rows of A (columns of B), among those that only one operand has. kAll: all of
  // them. kOneStride: the innermost ones that can be merged into one dimension with a single stride. kLast: only the
  // last one longer than 1. All other dimensions become batch dimensions.
  enum class Lines : uint8_t { kAll, kOneStride, kLast };
  Lines lines = Lines::kAll;
  bool swapped = false;  // A and B are exchanged, and D is transposed
};

// A dot as a batched matrix product: D[batch, m, n] = sum over k of A[batch, m, k] B[batch, k, n]. Dimensions that are
// contiguous with each other in both operands are merged. Dimensions of extent 1 are dropped. Batch dimensions that
// only A has become rows if the rows still have a single stride.
class DotProblem {
 public:
  explicit DotProblem(ContractionBuilder& builder, DotForm form = {});

  std::vector<DotDim> batch, m, n, k;
  // True if the operand is a strided view of `a_view.value` (`b_view.value`). If false, its strides in `batch`, `m`,
  // `n` and `k` are not valid.
  bool a_affine = true, b_affine = true;
  View a_view, b_view;
  bool swapped = false;

  static int64_t count(const std::vector<DotDim>& dims);
  double operations() const;
  // Such as "gemm 12x128x128x64".
  std::string label() const;

  // Returns the element of an operand at (batch, row of A or column of B, k), after the prologue. Records its loads
  // as operands of the kernel.
  ExprId element(ExprPool& pool, bool is_a, const Index& batch_at, const Index& line, const Index& k_at) const;
  // Returns the indices of the dot's result for (batch, row, column) of D.
  std::vector<Index> coordinates(IndexPool& pool, const Index& batch_at, const Index& row, const Index& column) const;

 private:
  // The dimensions of each operand by role. `free` are the rows of A or the columns of B; `contract` are the summed
  // dimensions.
  struct Roles {
    std::vector<int64_t> batch[2], free[2], contract[2];
  };
  enum Loop : size_t { kBatch, kRows, kColumns };
  static Roles roles_of(const ir::Graph& graph, const ir::Node& node);

  void make_dims();
  void fold_batches();
  void spread(Loop loop, DotForm::Lines lines);
  size_t side_of(bool is_a) const { return is_a != swapped ? 0 : 1; }
  const Shape& shape_of(size_t side) const;
  std::vector<DotDim> dims_of(const std::vector<size_t>& ids) const;
  void place(IndexPool& pool, Loop loop, const Index& at, std::vector<Index>& to) const;

  ContractionBuilder& builder_;
  const ir::Node& node_;
  Roles roles_;
  std::vector<DotDim> result_;                  // the dimensions of the dot's result
  std::array<std::vector<size_t>, 3> loops_{};  // the indices in result_ that each loop runs over, outermost first
};

// True if the dot has few columns and many rows. On a CPU, exchanging A and B then makes it faster.
bool has_few_columns(const ir::Graph& graph, const ir::Node& dot);

}  // namespace heddle::schedule
