#include "schedule/kernel_plan.h"

#include <algorithm>

#include "base/check.h"
#include "schedule/attention/cuda/launch.h"
#include "schedule/back_to_back/cuda.h"
#include "schedule/backend.h"
#include "schedule/product/cuda/contraction.h"
#include "schedule/product/cuda/family.h"
#include "schedule/product/cuda/side_by_side.h"
#include "schedule/recurrence/recurrent.h"
#include "schedule/region/cuda/launch/launch.h"
#include "schedule/sequence/sequence.h"
#include "target/cuda_occupancy.h"

namespace heddle::schedule {
namespace {

KernelLaunches launches_of(const KernelDesc& desc, const Config& config, const GpuTarget& target) {
  const size_t operands = desc.operands.size();
  return desc.visit([&](const CudaStitchDesc& stitch) { return plan_launches(stitch, operands); },
                    [&](const CudaBundleDesc& bundle) { return plan_launches(bundle, operands); },
                    [&](const RecurrentDesc& loops) { return KernelLaunches{{plan_launch(loops, operands)}}; },
                    [&](const AttentionDesc& attention) {
                      return plan_launches(attention, config.as<CudaAttentionConfig>(), target, operands);
                    },
                    [&](const CudaBackToBackDesc& both) {
                      return plan_launches(both, desc.operands, config.as<CudaBackToBackConfig>());
                    },
                    [&](const SequenceDesc& sequence) { return plan_launches(sequence, target, operands); },
                    [&](const StandaloneDesc& standalone) { return plan_launches(standalone, config, operands); },
                    [&](const ContractionDesc& contraction) {
                      if (const auto* window = contraction.get<WindowDesc>()) {
                        return KernelLaunches{{plan_launch(*window, config)}};
                      }
                      const std::vector<Operand> of_one = operands_of_one(contraction, desc.operands);
                      const ProductTask task{*contraction.get<Product>(), contraction.epilogue, of_one};
                      KernelLaunches made = cuda_family_of(config).launches(task, config, target);
                      repeat_launches(made, contraction.copies, of_one.size());
                      return made;
                    },
                    [](const auto&) { return KernelLaunches{}; });  // of a CPU, and TileDesc: who wrote it has them
}

// Blocks of an early launch take room on SMs from the launch in front of it, so all of them have to fit at once. Those
// of recurrences, which run for long beside a small L1, cost that launch more than they gain; grids whose blocks wait
// for each other need all of the GPU.
void decide_early(KernelPlan& plan, const GpuTarget& target) {
  constexpr int kFewRegisters = 32, kRowRegisters = 128;  // the latter: of rows in registers
  const bool memory_bound = plan.desc.get<CudaStitchDesc>() || plan.desc.get<CudaBundleDesc>();
  const int registers = memory_bound ? kRowRegisters : kFewRegisters;
  const bool possible = target.has_dependent_launch(), too_long = plan.desc.get<RecurrentDesc>() != nullptr;
  for (CudaLaunch& launch : plan.launches) {
    launch.early = possible && !too_long && !launch.cooperative && is_one_wave(launch, target, registers);
  }
  // Waiting costs every block. The text of a memory-bound kernel is for one launch, others are shared by launches of
  // all sizes.
  plan.waits = memory_bound ? plan.launches.front().early : possible;
}

}  // namespace

void plan_gpu_launches(KernelPlan& plan, const GpuTarget& target) {
  static_cast<KernelLaunches&>(plan) = launches_of(plan.desc, plan.config, target);
  for (const CudaLaunch& launch : plan.launches) {
    const std::string why = reject_waiting(launch, target);
    HEDDLE_CHECK(why.empty(), "{}", why);
  }
  decide_early(plan, target);
}

KernelPlan plan_kernel(const KernelDesc& desc, const Config& config, const Target& target) {
  KernelPlan plan{{}, desc, config};
  backend_of(target).plan_launches(plan, target);
  return plan;
}

}  // namespace heddle::schedule
