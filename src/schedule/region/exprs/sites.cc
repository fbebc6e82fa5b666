#include "schedule/region/exprs/sites.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {

Combine combine_of(const ir::Node& node) {
  const std::string& kind = node.attrs.text("kind");
  const bool arg = node.op == Op::kArgReduce;
  if (kind == "sum") return Combine::kSum;
  if (kind == "prod") return Combine::kProd;
  if (kind == "max") return arg ? Combine::kArgMax : Combine::kMax;
  if (kind == "min") return arg ? Combine::kArgMin : Combine::kMin;
  if (kind == "any") return Combine::kAny;
  HEDDLE_CHECK(kind == "all", "reduction {}", kind);
  return Combine::kAll;
}

std::vector<int64_t> reduced_dims(const ir::Node& node) {
  if (node.op == Op::kArgReduce) return {node.attrs.integer("dim")};
  return node.attrs.ints("dims");
}

std::vector<Index> operand_index(const std::vector<int64_t>& dims, const std::vector<Index>& kept,
                                 const std::vector<Index>& reduced) {
  std::vector<Index> at(kept.size() + reduced.size());
  size_t next_kept = 0, next_reduced = 0;
  for (size_t d = 0; d < at.size(); ++d) {
    const bool is_reduced = std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
    at[d] = is_reduced ? reduced[next_reduced++] : kept[next_kept++];
  }
  return at;
}

int level_of(const ExprPool& pool, const std::vector<ReductionSite>& sites, ExprId value) {
  int level = 0;
  visit_exprs(pool, {value}, [&](ExprId e) {
    const Expr& expr = pool[e];
    if (expr.kind == Expr::Kind::kLocal && expr.id < sites.size()) level = std::max(level, sites[expr.id].level + 1);
  });
  return level;
}

// Integers of less than a byte are reduced in bytes: what an overflow left above their bits goes when they are read.
ExprId result_of(ExprPool& pool, const ReductionSite& site, DType dtype) {
  const ExprId local = pool.local(dtype, site.local, site.position);
  if (is_float(dtype) || dtype == DType::kBool || bits_of(dtype) >= 8) return local;
  // So does a byte's least or largest value, before the first element.
  const Combine combine = combine_of(*site.node);
  if (is_signed_int(dtype) && (combine == Combine::kMax || combine == Combine::kMin)) {
    const int64_t half = int64_t{1} << (bits_of(dtype) - 1);
    const ExprId limit = pool.integer(dtype, combine == Combine::kMax ? -half : half - 1);
    const Op op = combine == Combine::kMax ? Op::kMax : Op::kMin;
    return pool.add({.kind = Expr::Kind::kOp, .dtype = dtype, .op = op, .args = {local, limit}});
  }
  return pool.add({.kind = Expr::Kind::kOp, .dtype = dtype, .op = Op::kCast, .args = {local}});
}

ExprId result_of_nothing(ExprPool& pool, Combine combine, DType dtype) {
  if (combine != Combine::kMax && combine != Combine::kMin) {
    return pool.integer(dtype, combine == Combine::kProd || combine == Combine::kAll);
  }
  // The lowest or highest of the type: what casting an infinity saturates to.
  const ExprId e = pool.constant(DType::kF64, combine == Combine::kMax ? -HUGE_VAL : HUGE_VAL);
  return pool.add({.kind = Expr::Kind::kOp, .dtype = dtype, .op = Op::kCast, .args = {e}, .lo = 0});
}

}  // namespace heddle::schedule
