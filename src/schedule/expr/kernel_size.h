#pragma once

#include <map>
#include <set>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// What one kernel may be made of. Compilers take time that grows faster than a text, so these bounds are what keeps a
// model's compilation in proportion to its size; the kernels of usual models are far below them.
constexpr int64_t kMostWeight = 1024;        // of what one root computes: its text takes GCC about a second
constexpr int64_t kMostJoinedWeight = 4096;  // of several roots together
constexpr size_t kMostExprs = 8192;          // different expressions
constexpr uint32_t kMostIndexSize = 256;     // atoms in the text of one index
constexpr double kMostStatements = 1 << 14;  // of a text, which computes again what two sides of guards share

constexpr const char* kTooLarge = "one kernel of all this would take long to compile";

// What an op costs to compile, in halves of an addition.
int64_t compile_weight(ir::Op op);
// The same for all that is computed for some roots.
int64_t compile_weight(const ExprPool& pool, const std::vector<ExprId>& roots);

// How many statements the texts of an expression and of the sides of the guards below it have.
std::map<ExprId, double> statements(const ExprPool& pool, ExprId root);

// Values of a group's graph that kernels hand to each other so that none computes more than kMostWeight, with the number
// of the boundary that they lie on. Values on one boundary are made from each other or alike: together.
std::map<ir::ValueId, uint32_t> cuts_for_size(const ir::Graph& graph);

// Whether a value may be made by a kernel and read by another instead of being computed where it is read.
bool can_be_handed_over(const ir::Graph& graph, ir::ValueId value);

}  // namespace heddle::schedule
