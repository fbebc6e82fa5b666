#pragma once

#include <optional>
#include <vector>

#include "schedule/region/region.h"

namespace heddle::schedule {

// Column reductions that share a read with row kernels and are computed in the same pass: each block also sums the
// columns of its part of the rows.
class ColumnRiders {
 public:
  explicit ColumnRiders(Region& region) : region_(region) {}

  // Splits the reductions that can ride along into partial ones.
  void find();
  void clear() { passes_.clear(); }

  // The next pass whose rows and partial reductions are pending.
  std::optional<RegionBackend::Planned> next();

 private:
  struct Rows {
    ir::ValueId rows;  // the root that spans them
    std::vector<ir::ValueId> partials;
    std::vector<int64_t> extents;
  };

  int64_t parts_for(int64_t rows) const;
  void carry(ir::ValueId value, ir::ValueId rows, int64_t parts);
  ir::ValueId current(ir::ValueId original) const;

  Region& region_;
  std::vector<Rows> passes_;
  std::vector<std::map<ir::ValueId, ir::ValueId>> moved_;  // for each split: the values that replace the old ones
};

}  // namespace heddle::schedule
