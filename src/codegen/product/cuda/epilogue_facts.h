#pragma once

#include <optional>
#include <vector>

#include "codegen/names.h"
#include "codegen/scalar/functor_members.h"

namespace heddle::codegen {

// What the code generator must know to write a GPU epilogue: how the results are computed from the accumulators, and
// how results and loads are laid out in memory along the columns.
class EpilogueFacts {
 public:
  EpilogueFacts(const schedule::Epilogue& epilogue, const std::vector<schedule::Operand>& operands,
                std::optional<size_t> returned)
      : e_(epilogue), operands_(operands), returned_(returned), columns_(uint64_t{1} << epilogue.col) {}

  // True if a call of the epilogue never crosses the border between two runs. A run is a range of columns that are
  // contiguous in the result; a call handles several adjacent columns.
  bool whole() const;
  // True if there is more than one run.
  bool split() const { return e_.pool.indices.extent(e_.col_outer) > 1; }
  // The first column of a call, as text. If the lanes of a call may belong to different runs, the column is not split
  // into run and position, and each lane computes its own position.
  const char* first_column() const { return split() && whole() ? "first" : "int64_t(col)"; }
  // lanes_adjoin(): true if the lanes access adjacent elements at this index. in_row(): true if they do at the index of
  // a store, and bounds do not exclude single lanes.
  bool lanes_adjoin(const schedule::Index& at) const;
  bool in_row(size_t store) const { return !bounds_lanes() && lanes_adjoin(e_.stores[store].at); }
  // True if a call may have lanes within the bounds and lanes outside of them.
  bool bounds_lanes() const { return !e_.bounds.empty() && ((split() && !whole()) || e_.bounds_lanes()); }

  // True if the epilogue only returns its result: there is no other store.
  bool returns_only() const { return returned_ && e_.stores.size() == 1 && whole(); }
  // rounds_all(): true if every result is rounded to a floating-point type of 16 bits or fewer. is_narrow(): true if
  // the value has 16 bits or fewer in the model.
  bool rounds_all() const;
  bool is_narrow(schedule::ExprId id) const { return size_of(e_.pool[uncast(id)].dtype) <= 2; }
  // stored(): the value to store, without its final rounding to the type in memory, since the store rounds.
  // unrounded(): the operand of a rounding from f32 to 16 bits; any other value itself.
  schedule::ExprId stored(size_t store) const;
  schedule::ExprId unrounded(schedule::ExprId id) const;

  // The steps that compute the only result. If `accumulator_init` is set, the accumulators start with it; it is equal
  // in all rows. `sum` is then the final value of the accumulators. `inner` is an expression of this final value. The
  // function `pack` computes the result from `inner` and rounds it to 16 bits.
  struct Steps {
    std::optional<schedule::ExprId> accumulator_init, sum;
    schedule::ExprId inner;
    const char* pack = "tile::fast::pack";
    bool costly = false;  // the steps compute more than a maximum with 0
  };
  std::optional<Steps> steps() const;

  // Used if there are reductions: a value such that all results depend on the accumulators only through this value.
  // Kernels compute it once and store it in place of the accumulators.
  std::optional<schedule::ExprId> shared() const;

  // Loads of adjacent columns. `vectors`: loads that are equal in all rows. `matrices`: loads that differ by row and
  // are aligned to 16 bytes.
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
