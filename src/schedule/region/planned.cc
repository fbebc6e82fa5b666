#include "schedule/region/planned.h"

#include <algorithm>

namespace heddle::schedule {

std::optional<PlannedKernels::Ready> PlannedKernels::next(const std::vector<RegionBackend::Planned>& planned) {
  states_.resize(planned.size());
  for (size_t k = 0; k < planned.size(); ++k) {
    State& state = states_[k];
    const bool is_ready = std::all_of(state.waits_for.begin(), state.waits_for.end(),
                                      [this](ir::ValueId v) { return region_.made.count(v) != 0; });
    if (state.is_done || !is_ready) continue;
    state.is_done = true;
    if (std::vector<ir::ValueId> roots = pending_roots(planned[k]); !roots.empty()) return Ready{k, std::move(roots)};
  }
  return std::nullopt;
}

// Empty if there is nothing left to plan.
std::vector<ir::ValueId> PlannedKernels::pending_roots(const RegionBackend::Planned& planned) const {
  if (region_.made.count(planned.rows) != 0) return {};
  std::vector<ir::ValueId> roots;
  if (region_.pending.count(planned.rows) != 0) roots.push_back(planned.rows);
  const size_t rows = roots.size();
  for (const ir::ValueId v : planned.partials) {
    if (region_.pending.count(v) != 0) roots.push_back(v);
  }
  return roots.size() > rows ? roots : std::vector<ir::ValueId>();
}

}  // namespace heddle::schedule
