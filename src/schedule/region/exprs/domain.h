#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "schedule/expr/index.h"

namespace heddle::schedule {

// Dimensions of a tensor as loop variables, row-major: their extents multiply to the element count. A dimension is
// split if an index would divide by a factor of it; dimensions are merged if every access allows it.
struct IterationDomain {
  Shape dims;
  std::vector<int64_t> extents;
  std::vector<VarId> vars;
};

// Gives a domain's dimensions new variables.
void make_vars(IndexPool& indices, IterationDomain& domain);
// Splits the extents of variables by factors of theirs. The caller makes new variables afterwards.
void split_by(IterationDomain& domain, const std::map<VarId, int64_t>& factors);

int64_t product(std::span<const int64_t> extents);
std::vector<int64_t> without_ones(const Shape& shape);

// The first range [first, last) of neighbours whose extents multiply to `count`.
std::optional<std::pair<size_t, size_t>> run_of(std::span<const int64_t> extents, int64_t count);

// The variables of the domain that index a smaller tensor: a run of them with its element count. Any such run is
// correct; this takes the first that keeps the tensor's reductions parallel. `by_dims`: also accepts variables with the
// extents of the tensor's dimensions and others between them.
std::optional<std::vector<VarId>> place_on(const IterationDomain& domain, const Shape& shape, bool by_dims);

// The variables that index a partial result: its dimensions up to the one of the parts are the first variables of the
// domain, the others its last. The variables between them are reduced within a part.
std::optional<std::vector<VarId>> place_part(const IterationDomain& domain, const Shape& shape, size_t part_dim);
// Splits variables of which a partial result has only a factor.
void split_for_part(IterationDomain& domain, const Shape& shape, size_t part_dim);

// Row-major position over variables.
Index linear(IndexPool& indices, const std::vector<VarId>& vars);

}  // namespace heddle::schedule
