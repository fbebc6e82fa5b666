#include "codegen/product/cuda/contraction.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "codegen/product/cuda/epilogue.h"
#include "codegen/product/cuda/gemm.h"
#include "codegen/product/cuda/window.h"
#include "codegen/region/cpu/stitch.h"
#include "codegen/text/includes.h"
#include "codegen/text/kernel_name.h"
#include "schedule/product/cuda/contraction.h"

namespace heddle::codegen {
namespace {

using schedule::Config;
using schedule::ContractionDesc;
using schedule::KernelDesc;
using schedule::Product;
using schedule::WindowDesc;

// What kernels are called until their text, after which they are named, is complete; "gemm" in launches.
constexpr const char* kUnnamed = "KERNEL_NAME";

std::string operators_of(const schedule::Epilogue& epilogue) {
  std::vector<schedule::ExprId> roots;
  for (const auto& store : epilogue.stores) roots.push_back(store.value);
  for (const auto& reduction : epilogue.reductions) roots.push_back(reduction.value);
  return codegen::operators_of(epilogue.pool, roots);
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

KernelSource gemm_source(const KernelDesc& desc, const ContractionDesc& c, const Product& d, const Config& config,
                         const Target& target) {
  const schedule::ProductTask task{d, c.epilogue, desc.operands};
  const schedule::Family& family = schedule::cuda_family_of(config);
  const schedule::CudaInstance instance = family.instance(task, config);
  const OperandTexts texts = operand_texts(task, family.lines());
  CudaGemmUnit unit = gemm_unit(instance, texts, c.epilogue, desc.operands, kUnnamed);
  schedule::ProductLaunches made = family.launches(task, config, target.cuda);
  if (!made.launches.empty()) {
    add_operands(made.launches, instance, texts);
    add_argument(made.launches.back(), unit.epilogue.block, unit.epilogue.pointers);
  }
  constexpr std::string_view kMade = "gemm";
  for (KernelText& kernel : unit.kernels) {
    const std::string what = kernel.symbol.substr(std::string_view(kUnnamed).size());  // "", "_reduce"
    const std::string unnamed = std::exchange(kernel.symbol, {});
    kernel.symbol = name_kernel(kernel.text, name_of(what, instance, c.epilogue, config), unnamed);
    add_named_headers(kernel);
    for (CudaLaunch& launch : made.launches) {
      if (launch.symbol == std::string(kMade) + what) launch.symbol = kernel.symbol;
    }
  }
  KernelSource source;
  HEDDLE_CHECK(!unit.kernels.empty(), "a contraction without kernels");
  static_cast<KernelText&>(source) = std::move(unit.kernels.front());
  source.others.assign(std::make_move_iterator(unit.kernels.begin() + 1), std::make_move_iterator(unit.kernels.end()));
  source.launches = std::move(made.launches);
  source.workspace_bytes = made.workspace_bytes;
  source.counter_bytes = made.counter_bytes;
  return source;
}

}  // namespace

KernelSource emit_cuda_contraction(const KernelDesc& desc, const ContractionDesc& c, const Config& config,
                                   const Target& target) {
  if (const auto* gemm = std::get_if<Product>(&c.problem)) return gemm_source(desc, c, *gemm, config, target);
  const auto& window = std::get<WindowDesc>(c.problem);
  KernelSource source = cuda_window_source(desc, c, window, config, kUnnamed);
  source.symbol = name_kernel(source.text, window.filters ? "depthwise" : "window", kUnnamed);
  source.launches.front().symbol = source.symbol;
  add_named_headers(source);
  return source;
}

}  // namespace heddle::codegen
