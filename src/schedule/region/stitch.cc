#include "schedule/region/stitch.h"

#include "schedule/region/cpu/backend.h"
#include "schedule/region/cuda/backend.h"

namespace heddle::schedule {

std::string_view to_string(Scheme scheme) {
  switch (scheme) {
    case Scheme::kIndependent:
      return "independent";
    case Scheme::kLocal:
      return "local";
    case Scheme::kRegional:
      return "regional";
    case Scheme::kCluster:
      return "cluster";
    case Scheme::kGlobal:
      return "global";
  }
  return "independent";
}

std::string_view to_string(Combine combine) {
  switch (combine) {
    case Combine::kSum:
      return "sum";
    case Combine::kProd:
      return "prod";
    case Combine::kMax:
      return "max";
    case Combine::kMin:
      return "min";
    case Combine::kAny:
      return "any";
    case Combine::kAll:
      return "all";
    case Combine::kArgMax:
      return "arg_max";
    case Combine::kArgMin:
      return "arg_min";
  }
  return "sum";
}

int64_t StitchDesc::grid_size() const {
  int64_t n = 1;
  for (const GridDim& dim : grid) n *= blocks(dim);
  return n;
}

ScheduledGroup schedule_stitch(const ir::Graph& graph, const ir::Group& group, const Target& target,
                               const StitchOptions& options) {
  Region region(graph, group, target, options);
  const auto backend = target.kind == TargetKind::kCuda ? cuda_region(region) : cpu_region(region);
  return schedule_region(region, *backend);
}

}  // namespace heddle::schedule
