#pragma once

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// One use of a reduction: its value at given kept indices.
struct ReductionSite {
  ir::ValueId value;
  const ir::Node* node;
  Index position;                 // linear position in the reduction's result
  uint64_t kept, reduced;         // variables
  ExprId operand = 0, along = 0;  // along: position on the reduced dimension, for arg_reduce
  uint32_t local;
  int level = 0;
};

Combine combine_of(const ir::Node& node);
std::vector<int64_t> reduced_dims(const ir::Node& node);

// The index at which a reduction reads its operand: dimensions `dims` at `reduced`, the others at `kept`, in order.
std::vector<Index> operand_index(const std::vector<int64_t>& dims, const std::vector<Index>& kept,
                                 const std::vector<Index>& reduced);

// The number of dependent reductions after which a value is known.
int level_of(const ExprPool& pool, const std::vector<ReductionSite>& sites, ExprId value);
// The result of a reduction as an expression, and the result of a reduction of no elements.
ExprId result_of(ExprPool& pool, const ReductionSite& site, DType dtype);
ExprId result_of_nothing(ExprPool& pool, Combine combine, DType dtype);

}  // namespace heddle::schedule
