#pragma once

#include <optional>
#include <vector>

#include "schedule/region/region.h"

namespace heddle::schedule {

// Finds column reductions that read the same values as row kernels, and computes both in the same pass: each block of a
// row kernel also reduces the columns over its part of the rows.
class ColumnRiders {
 public:
  ColumnRiders(Region& region, const KernelContext& context) : region_(region), context_(context) {}

  // Finds the column reductions that can be computed with a row kernel, and splits each into partial reductions.
  void find();
  void clear() { passes_.clear(); }

  // Returns the next pass whose rows and partial reductions are not yet planned; nullopt if there is none.
  std::optional<RegionBackend::Planned> next();

 private:
  struct Rows {
    ir::ValueId rows;  // the output over whole rows that the pass computes
    std::vector<ir::ValueId> partials;
    std::vector<int64_t> extents;
  };

  int64_t parts_for(int64_t rows, bool is_sum) const;
  void carry(ir::ValueId value, ir::ValueId rows, int64_t parts);
  ir::ValueId current(ir::ValueId original) const;

  Region& region_;
  const KernelContext& context_;
  std::vector<Rows> passes_;
  std::vector<std::map<ir::ValueId, ir::ValueId>> moved_;  // for each split: from old values to their replacements
};

}  // namespace heddle::schedule
