#include "schedule/sequence/requests.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "schedule/sequence/phase.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {
namespace {

// Whether a kernel is one launch of a product by `cluster_splitk`.
bool can_request(const ScheduledKernel& kernel, const GpuTarget& target) {
  const auto* config = kernel.config.get<ClusterSplitKConfig>();
  if (config == nullptr || config->splits > 1) return false;
  KernelPlan plan{{}, kernel.desc, kernel.config};
  plan_gpu_launches(plan, target);
  return plan.launches.size() == 1 && plan.counter_bytes == 0;
}

// The time in which a kernel and the boundary before it leave memory idle.
double idle_us(const ScheduledKernel& kernel, const GpuTarget& target) {
  return target.model.chip.graph_boundary_us + std::max(us_alone(kernel, target) - kernel.floor_seconds * 1e6, 0.0);
}

}  // namespace

std::vector<WeightRequest> plan_requests(const std::vector<PlannedKernel>& kernels,
                                         const std::vector<bool>& in_sequence, const GpuTarget& target) {
  constexpr int64_t kLeast = 1 << 16;  // less is no gain
  const auto& chip = target.model.chip;
  std::vector<WeightRequest> found;
  for (size_t by = 0; by < kernels.size(); ++by) {
    if (in_sequence[by] || !can_request(*kernels[by].kernel, target)) continue;
    // The end of this product and the beginning of the next one.
    double us = target.model.cluster_split.first_load_us + chip.graph_boundary_us;
    for (size_t i = by + 1; i < kernels.size() && !in_sequence[i]; ++i) {
      const std::vector<size_t> weights = weights_of(*kernels[i].kernel);
      if (weights.empty()) {
        us += idle_us(*kernels[i].kernel, target);
        continue;
      }
      const double room = std::min(us * chip.read_tbps * 1e6, most_ahead(target));
      const int64_t bytes =
          std::min(static_cast<int64_t>(room), operand_bytes(kernels[i].kernel->desc.operands[weights[0]]));
      if (bytes >= kLeast) found.push_back({by, i, weights[0], bytes});
      break;
    }
  }
  return found;
}

void add_request(CudaLaunch& launch, int operand, int64_t bytes) {
  std::memcpy(launch.arguments.front().data() + offsetof(tile::ClusterSplitKArgs, ahead_bytes), &bytes, sizeof(bytes));
  launch.pointers.push_back({0, offsetof(tile::ClusterSplitKArgs, ahead), operand});
}

}  // namespace heddle::schedule
