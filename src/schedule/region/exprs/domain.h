#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "schedule/expr/index.h"

namespace heddle::schedule {

// Dimensions of a tensor as loop variables: their extents multiply to the element count, row-major. Dimensions are
// split where an index would divide by a factor of theirs, and merged where every access allows it.
struct IterationDomain {
  Shape dims;
  std::vector<int64_t> extents;
  std::vector<VarId> vars;
};

// Gives a domain's dimensions new variables.
void make_vars(IndexPool& indices, IterationDomain& domain);
// Splits the extents of variables by factors of theirs; the variables are to be made anew.
void split_by(IterationDomain& domain, const std::map<VarId, int64_t>& factors);

int64_t product(std::span<const int64_t> extents);
std::vector<int64_t> without_ones(const Shape& shape);

// The first run of neighbours [first, last) whose extents multiply to `count`.
std::optional<std::pair<size_t, size_t>> run_of(std::span<const int64_t> extents, int64_t count);

// Which variables of the domain the elements of a smaller tensor lie on: a run of them with its element count, the
// first one that makes its reductions as parallel as they are; any would be correct. `by_dims`: else variables with the
// extents of its dimensions, others between them.
std::optional<std::vector<VarId>> place_on(const IterationDomain& domain, const Shape& shape, bool by_dims);

// The dimensions of a part, up to the one that counts parts, are the first variables of the domain, the others its last
// ones; between them lies what a part reduces.
std::optional<std::vector<VarId>> place_part(const IterationDomain& domain, const Shape& shape, size_t part_dim);
// Splits variables of which a part has a factor.
void split_for_part(IterationDomain& domain, const Shape& shape, size_t part_dim);

// Row-major position over variables.
Index linear(IndexPool& indices, const std::vector<VarId>& vars);

}  // namespace heddle::schedule
