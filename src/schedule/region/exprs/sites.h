#pragma once

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// One use of a reduction: the value of the reduction at given indices of the kept dimensions.
struct ReductionSite {
  ir::ValueId value;
  const ir::Node* node;
  Index position;                 // linear index into the reduction's result
  uint64_t kept, reduced;         // bit masks of variables
  ExprId operand = 0, along = 0;  // along: index along the reduced dimension, for arg_reduce
  uint32_t local;
  int level = 0;
};

Combine combine_of(const ir::Node& node);
std::vector<int64_t> reduced_dims(const ir::Node& node);

// Returns the indices at which a reduction reads its operand: `reduced` in the dimensions `dims`, and `kept` in the
// other dimensions, each in order.
std::vector<Index> operand_index(const std::vector<int64_t>& dims, const std::vector<Index>& kept,
                                 const std::vector<Index>& reduced);

// The number of reductions that must finish one after another before a value is known.
int level_of(const ExprPool& pool, const std::vector<ReductionSite>& sites, ExprId value);
// result_of() returns the result of a reduction as an expression. result_of_nothing() returns the result of a reduction
// over no elements.
ExprId result_of(ExprPool& pool, const ReductionSite& site, DType dtype);
ExprId result_of_nothing(ExprPool& pool, Combine combine, DType dtype);

}  // namespace heddle::schedule
