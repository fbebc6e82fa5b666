#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/region/region.h"

namespace heddle::schedule {

// Finds column reductions that read the same values as row kernels, and computes both in the same pass: each block of a
// row kernel also reduces the columns over its part of the rows. A row kernel either stores whole rows or reduces them.
class ColumnRiders {
 public:
  ColumnRiders(Region& region, const KernelContext& context) : region_(region), context_(context) {}

  // Finds the column reductions that can be computed with a row kernel, and splits each into partial reductions.
  void find();
  void renumber(const ValueMap& now);

  const std::vector<RegionBackend::Planned>& passes() const { return passes_; }
  // The column reductions that read again what a row reduction reads, each with the reason.
  const std::vector<std::string>& refusals() const { return refusals_; }

 private:
  struct ColumnReduction {
    ir::ValueId value;
    int64_t rows, elements;
  };
  // A column reduction that is computed in a pass over `rows`, in `parts` parts.
  struct Rider {
    ir::ValueId value, rows;
    int64_t parts;
    size_t pass;
  };

  std::optional<ir::ValueId> rows_of(const ColumnReduction& columns);
  std::optional<ir::ValueId> reduction_beside(const ColumnReduction& columns);
  bool saves_time(const ColumnReduction& columns, ir::ValueId rows, int64_t parts);
  int64_t parts_for(int64_t rows, bool may_be_uneven) const;
  std::optional<Rider> rider_of(const ir::Node& node);
  size_t pass_of(const Rider& rider, const std::vector<Rider>& riders);
  void carry(const std::vector<Rider>& riders);
  RegionBackend::Planned split(ir::ValueId value, ir::ValueId rows, int64_t parts, ValueMap& moved);
  bool is_output(ir::ValueId value) const;

  Region& region_;
  const KernelContext& context_;
  std::vector<RegionBackend::Planned> passes_;
  std::vector<std::string> refusals_;
};

}  // namespace heddle::schedule
