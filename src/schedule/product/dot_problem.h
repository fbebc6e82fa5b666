#pragma once

#include <array>
#include <string>
#include <vector>

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// A dimension of a dot with the strides of both operands (0 where an operand does not have it).
struct DotDim {
  int64_t extent, a, b;
};

// How a dot is seen as a matrix product.
struct DotForm {
  // Which dimensions of an operand are its rows (columns): all that it does not share; those of one stride, the last of
  // such; or the last one alone. The others are batches.
  enum class Lines : uint8_t { kAll, kOneStride, kLast };
  Lines lines = Lines::kAll;
  bool swapped = false;  // A and B change places, and D is transposed
};

// A dot as a batched matrix product: D[batch, m, n] = sum over k of A[batch, m, k] B[batch, k, n]. Dimensions that lie
// one behind the other in both operands are joined, those of extent 1 left out; batch dimensions that only A has become
// rows where rows stay one stride apart.
class DotProblem {
 public:
  explicit DotProblem(ContractionBuilder& builder, DotForm form = {});

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
  std::array<std::vector<size_t>, 3> loops_{};  // which of them each loop runs over, outermost first
};

// Where there are few columns and many rows, A and B had better change places on a CPU.
bool has_few_columns(const ir::Graph& graph, const ir::Node& dot);

}  // namespace heddle::schedule
