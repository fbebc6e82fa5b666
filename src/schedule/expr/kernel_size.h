#pragma once

#include <map>
#include <set>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// Limits on the size of one kernel. Compile time grows faster than the text, so these limits keep a model's compile
// time proportional to its size. Kernels of usual models stay far below them.
constexpr int64_t kMostWeight = 1024;        // per root: GCC takes about a second for its text
constexpr int64_t kMostJoinedWeight = 4096;  // of several roots together
constexpr size_t kMostExprs = 8192;          // different expressions
constexpr uint32_t kMostIndexSize = 256;     // atoms in the text of one index
constexpr double kMostStatements = 1 << 14;  // of a text; work shared by two sides of guards is repeated

constexpr const char* kTooLarge = "one kernel of all this would take long to compile";

// The compile cost of an op, in halves of an addition.
int64_t compile_weight(ir::Op op);
// The compile cost of everything that the roots compute.
int64_t compile_weight(const ExprPool& pool, const std::vector<ExprId>& roots);

// The number of statements in the text of an expression, and of the sides of the guards below it.
std::map<ExprId, double> statements(const ExprPool& pool, ExprId root);

// Values of a group's graph to pass between kernels so that no kernel computes more than kMostWeight, each with the
// number of its boundary. Values on one boundary depend on each other or are alike, so they are passed together.
std::map<ir::ValueId, uint32_t> cuts_for_size(const ir::Graph& graph);

// True if one kernel may store a value for another to read, instead of computing it where it is read.
bool can_be_handed_over(const ir::Graph& graph, ir::ValueId value);

}  // namespace heddle::schedule
