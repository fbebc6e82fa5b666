#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "schedule/expr/index.h"

namespace heddle::schedule {

// The loop variables that iterate over a tensor in row-major order. The product of their extents is the number of
// elements. A dimension of the tensor is split into two variables if an index would otherwise divide by a factor of its
// extent. Dimensions are merged into one variable if every access allows it.
struct IterationDomain {
  Shape dims;
  std::vector<int64_t> extents;
  std::vector<VarId> vars;
};

// Creates a new variable for each extent of a domain.
void make_vars(IndexPool& indices, IterationDomain& domain);
// Splits the extent of each variable in `factors` by the given factor. Afterwards, the caller makes new variables.
void split_by(IterationDomain& domain, const std::map<VarId, int64_t>& factors);

int64_t product(std::span<const int64_t> extents);
std::vector<int64_t> without_ones(const Shape& shape);

// Returns the first range [first, last) of consecutive extents whose product is `count`; nullopt if there is none. A
// range is preferred if the product of the extents after it is `behind`.
std::optional<std::pair<size_t, size_t>> run_of(std::span<const int64_t> extents, int64_t count,
                                                std::optional<int64_t> behind = {});

// Returns the variables of the domain that index a smaller tensor: consecutive variables whose extents multiply to the
// tensor's element count. All matches are correct. The function returns the match with `behind` elements of the domain
// after it, if there is one; else the outermost match, which keeps the tensor's reductions parallel. If `by_dims`, it
// also accepts variables that are not consecutive but whose extents are those of the tensor's dimensions. Returns
// nullopt if there is no match.
std::optional<std::vector<VarId>> place_on(const IterationDomain& domain, const Shape& shape, bool by_dims,
                                           std::optional<int64_t> behind = {});

// Returns the variables that index a partial result of shape `shape`. Dimensions 0 to `part_dim` (the dimension of the
// parts) are the first variables of the domain; the dimensions after `part_dim` are the last variables. The variables
// in the middle are reduced within a part. Returns nullopt if the extents do not match.
std::optional<std::vector<VarId>> place_part(const IterationDomain& domain, const Shape& shape, size_t part_dim);
// Splits each variable of the domain whose extent is a proper multiple of the matching extent of a partial result.
void split_for_part(IterationDomain& domain, const Shape& shape, size_t part_dim);

// The row-major linear index over the variables.
Index linear(IndexPool& indices, const std::vector<VarId>& vars);

}  // namespace heddle::schedule
