#include "schedule/product/cuda/side_by_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/product/cuda/contraction.h"

namespace heddle::schedule {
namespace {

using Parameter = CudaInstance::Parameter;

// The matrices of all products as if they were neighbours in memory.
void stack(OperandView& view, int64_t lines, int64_t copies) {
  constexpr int64_t kAligned = 64;  // elements
  const int64_t depth = view.depth;
  view.batch = {{copies, round_up(std::max(view.row * lines, view.k * depth), kAligned)}};
}

// True if each block of a kernel computes one tile of one product and takes nothing but tensor maps and constant
// blocks, so that its blocks can be repeated.
bool can_repeat(const ProductTask& one, const Config& config, const GpuTarget& target) {
  const Family& family = cuda_family_of(config);
  if (family.name() != WgmmaConfig::kName) return false;
  const KernelLaunches made = family.launches(one, config, target);
  const CudaInstance instance = family.instance(one, config);
  const int64_t tiles =
      ceil_div(one.product.m, int64_t{instance.tile_m}) * ceil_div(one.product.n, int64_t{instance.tile_n});
  return made.launches.size() == 1 && made.workspace_bytes == 0 && made.counter_bytes == 0 && !instance.residual &&
         instance.helpers.empty() && made.launches[0].grid[0] >= tiles &&
         std::all_of(instance.arguments.begin(), instance.arguments.end(), [](const CudaInstance::Argument& a) {
           return a.kind == Parameter::kMap || a.kind == Parameter::kNoMap || a.kind == Parameter::kBlock;
         });
}

}  // namespace

std::optional<ScheduledKernel> side_by_side(const std::vector<ScheduledKernel>& products, const GpuTarget& target) {
  const ScheduledKernel& first = products.front();
  const auto desc = first.desc.get<ContractionDesc>();
  const Product* product = desc != nullptr ? desc->get<Product>() : nullptr;
  if (product == nullptr || product->batch != 1 || product->a.form != OperandView::Form::kMatrix ||
      product->b.form != OperandView::Form::kMatrix) {
    return std::nullopt;
  }
  const auto copies = static_cast<int64_t>(products.size());
  Product all = *product;
  all.batch = copies;
  stack(all.a, all.m, copies);
  stack(all.b, all.n, copies);
  const ProductTask one{*product, desc->epilogue, first.desc.operands};
  for (const CudaCandidate& candidate : cuda_candidates({all, desc->epilogue, first.desc.operands}, target)) {
    if (!candidate.rejected.empty() || !can_repeat(one, candidate.config, target)) continue;
    auto repeated = std::make_shared<ContractionDesc>(*desc);
    repeated->copies = static_cast<int>(copies);
    ScheduledKernel kernel{{{}, std::move(repeated)}, candidate.config, {}, "", 0, {}};
    for (const ScheduledKernel& from : products) {
      kernel.desc.operands.insert(kernel.desc.operands.end(), from.desc.operands.begin(), from.desc.operands.end());
      kernel.bindings.insert(kernel.bindings.end(), from.bindings.begin(), from.bindings.end());
      kernel.floor_seconds += from.floor_seconds;
    }
    kernel.label = fmt::format("{}, {} side by side", first.label, copies);
    return kernel;
  }
  return std::nullopt;
}

std::vector<Operand> operands_of_one(const ContractionDesc& desc, const std::vector<Operand>& operands) {
  HEDDLE_CHECK(operands.size() % static_cast<size_t>(desc.copies) == 0, "products of unequal operands");
  return {operands.begin(), operands.begin() + static_cast<int64_t>(operands.size()) / desc.copies};
}

void repeat_launches(KernelLaunches& one, int copies, size_t operands) {
  if (copies == 1) return;
  for (CudaLaunch& launch : one.launches) {
    launch.grid[2] = static_cast<uint32_t>(copies);
    const std::vector<TensorMapDesc> maps = launch.maps;
    for (int copy = 1; copy < copies; ++copy) {
      for (TensorMapDesc map : maps) {
        map.operand += copy * static_cast<int>(operands);
        launch.maps.push_back(map);
      }
    }
  }
}

}  // namespace heddle::schedule
