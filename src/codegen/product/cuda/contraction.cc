#include "codegen/product/cuda/contraction.h"

#include <utility>

#include "base/check.h"
#include "codegen/product/cuda/epilogue.h"
#include "codegen/product/cuda/gemm.h"
#include "codegen/product/cuda/window.h"
#include "codegen/text/kernel_name.h"
#include "schedule/product/cuda/contraction.h"
#include "schedule/product/cuda/side_by_side.h"
#include "schedule/sequence/phase.h"

namespace heddle::codegen {
namespace {

using schedule::KernelPlan;
using schedule::Product;

std::string operators_of(const schedule::Epilogue& epilogue) {
  return codegen::operators_of(epilogue.pool, epilogue.values());
}

// What begins the symbols of a unit's kernels: "wgmma_128x192_add_max". Where parts are summed later it is that kernel
// that knows the epilogue.
std::string name_of(const std::string& what, const schedule::CudaInstance& instance, const schedule::Epilogue& epilogue,
                    const Config& config) {
  const std::string operators = operators_of(epilogue);
  if (!what.empty()) return what.substr(1) + (what == "_reduce" ? operators : "");
  return fmt::format("{}_{}x{}{}", family_of(config), instance.tile_m, instance.tile_n,
                     instance.partial ? "" : operators);
}

KernelSource gemm_source(const KernelPlan& plan, const ContractionDesc& c, const Product& d) {
  const std::vector<schedule::Operand> of_one = schedule::operands_of_one(c, plan.desc.operands);
  const schedule::ProductTask task{d, c.epilogue, of_one};
  const schedule::Family& family = schedule::cuda_family_of(plan.config);
  const schedule::CudaInstance instance = family.instance(task, plan.config);
  const OperandTexts texts = operand_texts(task, family.lines());
  const CudaGemmUnit unit = gemm_unit(instance, texts, c.epilogue, of_one, c.copies);
  KernelSource source;
  source.launches = plan.launches;
  if (!source.launches.empty()) {
    add_operands(source.launches, instance, texts);
    for (int copy = 0; copy < c.copies; ++copy) {
      std::vector<PointerPatch> pointers = unit.epilogue.pointers;
      for (PointerPatch& pointer : pointers) pointer.operand += copy * static_cast<int>(of_one.size());
      add_argument(source.launches.back(), unit.epilogue.block, pointers);
    }
  }
  HEDDLE_CHECK(!unit.kernels.empty(), "a contraction without kernels");
  for (const CudaGemmUnit::Kernel& from : unit.kernels) {
    KernelText kernel{"", from.includes, ""};
    name_kernel(kernel, name_of(from.suffix, instance, c.epilogue, plan.config), from.text, plan.waits && !from.waits,
                kStandIn + from.suffix);
    for (CudaLaunch& launch : source.launches) {
      if (launch.symbol == "gemm" + from.suffix) launch.symbol = kernel.symbol;
    }
    if (&from == &unit.kernels.front()) {
      static_cast<KernelText&>(source) = std::move(kernel);
    } else {
      source.others.push_back(std::move(kernel));
    }
  }
  source.workspace_bytes = plan.workspace_bytes;
  source.counter_bytes = plan.counter_bytes;
  return source;
}

}  // namespace

CudaPhase product_phase(const KernelPlan& plan, const ContractionDesc& c) {
  const Product& d = *c.get<Product>();
  const schedule::ProductTask task{d, c.epilogue, plan.desc.operands};
  const schedule::Family& family = schedule::cuda_family_of(plan.config);
  const schedule::CudaInstance instance = family.instance(task, plan.config);
  const OperandTexts texts = operand_texts(task, family.lines());
  std::vector<CudaLaunch> launches = plan.launches;
  add_operands(launches, instance, texts);
  CudaPhase phase = gemm_phase(instance, texts, c.epilogue, plan.desc.operands,
                               schedule::loads_ahead(d, plan.config.as<schedule::SkinnyConfig>()));
  const CudaFunctor epilogue = cuda_epilogue(c.epilogue, plan.desc.operands);
  add_argument(launches.back(), epilogue.block, epilogue.pointers);
  phase.launch = std::move(launches.front());
  return phase;
}

KernelSource emit_cuda_contraction(const KernelPlan& plan, const ContractionDesc& c) {
  if (const auto* gemm = c.get<Product>()) return gemm_source(plan, c, *gemm);
  return cuda_window_source(plan, c, *c.get<WindowDesc>());
}

}  // namespace heddle::codegen
