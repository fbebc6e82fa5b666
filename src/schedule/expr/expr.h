#pragma once

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ir/graph.h"
#include "schedule/expr/index.h"

namespace heddle::schedule {

// Names of the IR that most files of this folder use.
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::ValueId;

// A scalar computation at one point of a kernel's iteration space. Expressions form a hash-consed DAG: equal
// computations have equal ids. Comparing ids therefore finds computations that several stages of a kernel share.
struct Expr {
  enum class Kind : uint8_t {
    kConstant,  // `bits`: a double's bits for floating dtypes, else the integer
    kLoad,      // element `index` of buffer `id` (dense, row-major); lo = 1 or 2: the values are positions that ascend
                // along a vector, over a range of less than `lo` vectors
    kLocal,     // a variable of the surrounding code, such as an accumulator or the result of a reduction; `index`
                // depends on the same loop variables as the value
    kIndex,     // the value of `index`, as dtype
    kOp,        // `op` on args; lo: saturate (cast), rounded (mul, div) or positive (is_inf); hi: excess_precision
                // (cast) or negative (is_inf)
    kGuard,     // lo <= index < hi ? args[0] : args[1]; the argument that is not chosen must not be evaluated
    kRandom,    // Philox with seed `bits` at linear index `index`; lo = 1: normally distributed
  };
  Kind kind;
  DType dtype;
  ir::Op op = ir::Op::kAdd;
  uint32_t id = 0;
  std::vector<ExprId> args = {};
  Index index = {};
  int64_t lo = 0, hi = 0;
  uint64_t bits = 0;
};

class ExprPool {
 public:
  IndexPool indices;

  ExprId add(Expr expr);
  ExprId constant(DType dtype, double value);
  ExprId integer(DType dtype, int64_t value);
  ExprId load(DType dtype, uint32_t buffer, Index at);
  ExprId local(DType dtype, uint32_t id, Index varies_with = {});
  // Adds a guard. If the range of the index decides the condition, returns `then` or `otherwise` directly.
  ExprId guard(Index index, int64_t lo, int64_t hi, ExprId then, ExprId otherwise);

  const Expr& operator[](ExprId id) const { return exprs_[id]; }
  size_t size() const { return exprs_.size(); }
  // True if equal ids mean equal expressions in this pool and `other`.
  bool same_as(const ExprPool& other) const { return interned_ == other.interned_ && indices.same_as(other.indices); }

  // The loop variables that an expression depends on, as a bit mask (a kernel has fewer than 64 variables).
  uint64_t vars(ExprId id) const { return vars_[id]; }
  uint64_t vars(const Index& index) const;
  uint64_t vars(const Atom& atom) const;
  // Replaces variables by indices (`with`) and whole expressions by other expressions (`exprs`).
  ExprId substitute(ExprId id, const std::map<VarId, Index>& with, const std::map<ExprId, ExprId>& exprs);
  Index substitute(const Index& index, const std::map<VarId, Index>& with, const std::map<ExprId, ExprId>& exprs);

  // Describes an expression by the node of the model that it computes, for example "exp of Softmax". The description
  // appears in comments of kernels.
  void describe(ExprId id, std::string text);
  const std::string* description(ExprId id) const;

 private:
  using Key = std::tuple<Expr::Kind, DType, ir::Op, uint32_t, std::vector<ExprId>, Index, int64_t, int64_t, uint64_t>;
  std::vector<Expr> exprs_;
  std::vector<uint64_t> vars_;
  std::vector<uint64_t> atom_vars_;  // indexed by atom; only atoms that occur in expressions
  std::map<Key, ExprId> interned_;
  std::map<ExprId, std::string> descriptions_;
};

// The dtype in which values of type `dtype` are computed: f32 for narrower floats, else the same type.
DType compute_dtype(DType dtype);

// The value of a constant whose elements are all equal (rank 0 or a splat), as an expression; nullopt for other
// constants.
std::optional<ExprId> splat_of(ExprPool& pool, const Tensor& tensor);

}  // namespace heddle::schedule
