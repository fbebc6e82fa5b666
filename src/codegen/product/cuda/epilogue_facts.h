#pragma once

#include <optional>
#include <vector>

#include "codegen/scalar/functor_members.h"
#include "schedule/product/contraction.h"

namespace heddle::codegen {

// What writing an epilogue for a GPU depends on: how its results are computed from the accumulators, and how they and
// what they read lie along the columns.
class EpilogueFacts {
 public:
  EpilogueFacts(const schedule::Epilogue& epilogue, const std::vector<schedule::Operand>& operands,
                std::optional<size_t> returned)
      : e_(epilogue), operands_(operands), returned_(returned), columns_(uint64_t{1} << epilogue.col) {}

  // Whether a border between runs of columns in the result never lies within what a template hands over at once.
  bool whole() const;
  // Whether columns are in several such runs.
  bool split() const { return e_.pool.indices.extent(e_.col_outer) > 1; }
  // The column where a call begins, as text. Lanes may lie on both sides of a border: their columns are not split, each
  // finds its own place.
  const char* first_column() const { return split() && whole() ? "first" : "int64_t(col)"; }
  // Whether lanes lie side by side at an index, and at that of a store.
  bool lanes_adjoin(const schedule::Index& at) const;
  bool in_row(size_t store) const { return !bounds_lanes() && lanes_adjoin(e_.stores[store].at); }
  // Whether some lanes of a call may be within the bounds and others not.
  bool bounds_lanes() const { return !e_.bounds.empty() && ((split() && !whole()) || e_.bounds_lanes()); }

  // Whether nothing is stored but what is returned.
  bool returns_only() const { return returned_ && e_.stores.size() == 1 && whole(); }
  // Whether every result is rounded to 16 bits or fewer, and whether a model has a value in 16 bits.
  bool rounds_all() const;
  bool is_narrow(schedule::ExprId id) const { return size_of(e_.pool[uncast(id)].dtype) <= 2; }
  // What is stored, without a last rounding to the type in memory: the store rounds.
  schedule::ExprId stored(size_t store) const;
  schedule::ExprId unrounded(schedule::ExprId id) const;

  // The only result, in steps: accumulators may begin with `seed`, which is the same for all rows, and are `sum` in the
  // end; `inner` is computed from that, rounded to 16 bits by `pack`.
  struct Steps {
    std::optional<schedule::ExprId> seed, sum;
    schedule::ExprId inner;
    const char* pack = "tile::fast::pack";
    bool costly = false;  // they compute more than a maximum of the accumulators
  };
  std::optional<Steps> steps() const;

  // Where something is reduced: a value from which all results are computed, whatever else the accumulators are used
  // for. Kernels then put it in their place, once.
  std::optional<schedule::ExprId> shared() const;

  // Loads of neighbours that are the same in all rows, and those of whole rows that begin at multiples of 16 bytes.
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
