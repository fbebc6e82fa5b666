#include "schedule/region/stitch.h"

#include "schedule/backend.h"

namespace heddle::schedule {

std::string_view to_string(Scheme scheme) {
  constexpr std::string_view kNames[] = {"independent", "local", "regional", "cluster", "global"};
  return kNames[static_cast<size_t>(scheme)];
}

std::string_view to_string(Combine combine) {
  constexpr std::string_view kNames[] = {"sum", "prod", "max", "min", "any", "all", "arg_max", "arg_min"};
  return kNames[static_cast<size_t>(combine)];
}

const GridDim* blocked(const std::vector<GridDim>& grid, VarId v) {
  for (const GridDim& d : grid) {
    if (d.var == v && d.block > 1) return &d;
  }
  return nullptr;
}

int64_t RegionDesc::iterations() const {
  int64_t n = 1;
  for (const GridDim& dim : grid) n *= blocks_of(dim);
  return n;
}

int64_t RegionDesc::extent(VarId v) const {
  const GridDim* d = blocked(v);
  return d != nullptr ? d->block : pool.indices.extent(v);
}

ScheduledGroup schedule_stitch(const ir::Graph& graph, const ir::Group& group, const Target& target,
                               const StitchOptions& options) {
  Region region(graph, group, target, options);
  const auto backend = backend_of(target).region(region);
  return schedule_region(region, *backend);
}

}  // namespace heddle::schedule
