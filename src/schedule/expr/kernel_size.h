#pragma once

#include <map>
#include <set>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// Limits on the size of one kernel. Compile time grows faster than the length of the source text, so these limits keep
// a model's compile time proportional to its size. Kernels of usual models are far below the limits.
constexpr int64_t kMostWeight = 1024;        // compile weight per root; GCC takes about a second for this much
constexpr int64_t kMostJoinedWeight = 4096;  // compile weight of all roots of a kernel
constexpr size_t kMostExprs = 8192;          // number of distinct expressions
constexpr uint32_t kMostIndexSize = 256;     // atoms in the text of one index
constexpr double kMostStatements = 1 << 14;  // in one text; work that both sides of a guard share counts twice

constexpr const char* kTooLarge = "one kernel of all this would take long to compile";

// The compile cost of an op; an addition costs 2.
int64_t compile_weight(ir::Op op);
// The compile cost of all expressions that the roots are computed from.
int64_t compile_weight(const ExprPool& pool, const std::vector<ExprId>& roots);

// Counts the statements in the text of an expression. Returns the count for `root` and for each side of the guards that
// it contains.
std::map<ExprId, double> statements(const ExprPool& pool, ExprId root);

// Chooses values of a group's graph to pass between kernels through memory, so that no kernel's compile weight exceeds
// kMostWeight. Maps each chosen value to the number of a boundary between kernels. Values with the same boundary depend
// on each other or are similar, so they are passed together.
std::map<ir::ValueId, uint32_t> cuts_for_size(const ir::Graph& graph);

// True if one kernel may store the value for other kernels to load. Otherwise each kernel computes the value itself.
bool can_be_handed_over(const ir::Graph& graph, ir::ValueId value);

}  // namespace heddle::schedule
