#pragma once

#include <optional>
#include <vector>

#include "codegen/names.h"
#include "codegen/scalar/functor_members.h"

namespace heddle::codegen {

// Facts for writing a GPU epilogue: how results are computed from the accumulators, and how results and loads lie along
// the columns.
class EpilogueFacts {
 public:
  EpilogueFacts(const schedule::Epilogue& epilogue, const std::vector<schedule::Operand>& operands,
                std::optional<size_t> returned)
      : e_(epilogue), operands_(operands), returned_(returned), columns_(uint64_t{1} << epilogue.col) {}

  // True if the columns that a template hands over at once never cross a border between runs of columns in the result.
  bool whole() const;
  // True if the columns form several such runs.
  bool split() const { return e_.pool.indices.extent(e_.col_outer) > 1; }
  // The column where a call begins, as text. If lanes may lie on both sides of a border, the column is not split, and
  // each lane finds its own place.
  const char* first_column() const { return split() && whole() ? "first" : "int64_t(col)"; }
  // lanes_adjoin(): lanes are adjacent at an index; in_row(): at the index of a store.
  bool lanes_adjoin(const schedule::Index& at) const;
  bool in_row(size_t store) const { return !bounds_lanes() && lanes_adjoin(e_.stores[store].at); }
  // True if some lanes of a call may be within the bounds and others not.
  bool bounds_lanes() const { return !e_.bounds.empty() && ((split() && !whole()) || e_.bounds_lanes()); }

  // True if the returned result is the only store.
  bool returns_only() const { return returned_ && e_.stores.size() == 1 && whole(); }
  // rounds_all(): every result is rounded to 16 bits or fewer. is_narrow(): a model has the value in 16 bits or fewer.
  bool rounds_all() const;
  bool is_narrow(schedule::ExprId id) const { return size_of(e_.pool[uncast(id)].dtype) <= 2; }
  // The stored value without the last rounding to the type in memory, since the store rounds.
  schedule::ExprId stored(size_t store) const;
  schedule::ExprId unrounded(schedule::ExprId id) const;

  // The only result, computed in steps. Accumulators may begin with `accumulator_init`, which is the same for all rows,
  // and end as `sum`. `inner` is computed from `sum`, and `pack` rounds it to 16 bits.
  struct Steps {
    std::optional<schedule::ExprId> accumulator_init, sum;
    schedule::ExprId inner;
    const char* pack = "tile::fast::pack";
    bool costly = false;  // they compute more than a maximum of the accumulators
  };
  std::optional<Steps> steps() const;

  // If there are reductions: a value through which all results depend on the accumulators. Kernels compute it once and
  // put it in the place of the accumulators.
  std::optional<schedule::ExprId> shared() const;

  // `vectors`: loads of adjacent columns that are the same in all rows. `matrices`: loads that differ by row and are
  // aligned to 16 bytes.
  struct Rows {
    std::vector<schedule::ExprId> vectors, matrices;
  };
  Rows rows(const FunctorMembers& members) const;

 private:
  bool is_accumulator(schedule::ExprId id) const;
  bool is_f32(schedule::ExprId id) const;
  schedule::ExprId uncast(schedule::ExprId id) const;
  int find_sum(Steps& steps) const;
  bool needs_accumulator(schedule::ExprId value, schedule::ExprId known) const;

  const schedule::Epilogue& e_;
  const std::vector<schedule::Operand>& operands_;
  const std::optional<size_t> returned_;
  const uint64_t columns_;
};

}  // namespace heddle::codegen
