#pragma once

#include <optional>
#include <set>
#include <vector>

#include "schedule/region/region.h"

namespace heddle::schedule {

// The kernels that a backend planned (RegionBackend::planned()) while a region is cut into kernels. Each is made as
// soon as earlier kernels have computed what it cannot compute itself.
class PlannedKernels {
 public:
  explicit PlannedKernels(const Region& region) : region_(region) {}

  void clear() { states_.clear(); }
  struct Ready {
    size_t number;  // in `planned`
    std::vector<ir::ValueId> roots;
  };
  // Returns the next kernel that does not wait for values, with those of its roots that no kernel has computed. Each
  // kernel is returned once, and again after each wait.
  std::optional<Ready> next(const std::vector<RegionBackend::Planned>& planned);
  // The kernel cannot be made before these values are.
  void wait(size_t number, std::set<ir::ValueId> values) { states_[number] = {false, std::move(values)}; }

 private:
  struct State {
    bool is_done = false;
    std::set<ir::ValueId> waits_for;
  };
  std::vector<ir::ValueId> pending_roots(const RegionBackend::Planned& planned) const;

  const Region& region_;
  std::vector<State> states_;
};

}  // namespace heddle::schedule
