#include "codegen/product/cuda/contraction.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "codegen/product/cuda/epilogue.h"
#include "codegen/product/cuda/gemm.h"
#include "codegen/product/cuda/tile.h"
#include "codegen/product/cuda/window.h"
#include "codegen/region/cpu/stitch.h"
#include "codegen/text/includes.h"
#include "codegen/text/kernel_name.h"
#include "schedule/product/cuda/contraction.h"
#include "schedule/product/cuda/engine.h"

namespace heddle::codegen {
namespace {

using schedule::Config;
using schedule::ContractionDesc;
using schedule::CudaGemmDesc;
using schedule::KernelDesc;
using schedule::WindowDesc;

// Appends a functor's block to a launch.
void add_argument(CudaLaunch& launch, const CudaFunctor& functor) {
  for (PointerPatch patch : functor.pointers) {
    patch.argument = static_cast<int>(launch.arguments.size());
    launch.pointers.push_back(patch);
  }
  launch.arguments.push_back(functor.block);
}

// What kernels are called until their text, after which they are named, is complete; "gemm" in launches.
constexpr const char* kUnnamed = "KERNEL_NAME";

std::string operators_of(const schedule::Epilogue& epilogue) {
  std::vector<schedule::ExprId> roots;
  for (const auto& store : epilogue.stores) roots.push_back(store.value);
  for (const auto& reduction : epilogue.reductions) roots.push_back(reduction.value);
  return codegen::operators_of(epilogue.pool, roots);
}

// What begins the symbols of a unit's kernels: "sm90_128x192_add_max". Where parts are summed later it is that kernel
// that knows the epilogue.
std::string name_of(const std::string& what, bool sums_later, const schedule::Epilogue& epilogue,
                    const Config& config) {
  const std::string operators = operators_of(epilogue);
  if (!what.empty()) return what.substr(1) + (what == "_reduce" ? operators : "");
  return fmt::format("{}_{}x{}{}", config.algorithm, config.tile_m, config.tile_n, sums_later ? "" : operators);
}

// Names the kernels and the launches, and gives the last launch the epilogue.
KernelSource finish(CudaGemmUnit unit, schedule::CudaGemmLaunches made, const schedule::Epilogue& epilogue,
                    const Config& config) {
  if (!made.launches.empty()) add_argument(made.launches[static_cast<size_t>(made.epilogue_launch)], unit.epilogue);
  constexpr std::string_view kMade = "gemm";
  const bool sums_later = std::any_of(unit.kernels.begin(), unit.kernels.end(),
                                      [](const KernelText& kernel) { return kernel.symbol.ends_with("_reduce"); });
  for (KernelText& kernel : unit.kernels) {
    const std::string what = kernel.symbol.substr(std::string_view(kUnnamed).size());  // "", "_reduce"
    const std::string unnamed = std::exchange(kernel.symbol, {});
    kernel.symbol = name_kernel(kernel.text, name_of(what, sums_later, epilogue, config), unnamed);
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

KernelSource tile_source(const KernelDesc& desc, const ContractionDesc& c, const CudaGemmDesc& d, const Config& config,
                         const Target& target) {
  const schedule::CudaTileConfig g = schedule::tile_config(config);
  const LinesOf lines = schedule::engine_of(g).lines ? LinesOf::kAll : LinesOf::kNone;
  const schedule::CudaTileProblem problem = written_problem(desc, c.epilogue, d, lines);
  return finish(tile_unit(problem, g, c.epilogue, desc.operands, kUnnamed),
                schedule::make_launches(problem, g, target.cuda, static_cast<int>(desc.operands.size())), c.epilogue,
                config);
}

// Of the first result; of what is only reduced there is none.
uint32_t operand_of_d(const schedule::Epilogue& epilogue) {
  return epilogue.stores.empty() ? 0 : epilogue.stores.front().operand;
}

KernelSource sm90_source(const KernelDesc& desc, const ContractionDesc& c, const CudaGemmDesc& d, const Config& config,
                         const Target& target) {
  std::string why;
  const auto problem_of = config.algorithm == "sm90w" ? schedule::sm90_windows_problem : schedule::sm90_problem;
  auto problem = problem_of(d, c.epilogue, desc.operands, &why);
  HEDDLE_CHECK(problem.has_value(), "sm90 for a product that it does not serve: {}", why);
  const bool copied = schedule::needs_repack(*problem);
  problem->constant_a = !copied && !problem->windows && desc.operands[d.a.operand].constant;
  problem->constant_b = !copied && desc.operands[d.b.operand].constant;
  const schedule::CudaGemmConfig g = schedule::sm90_config(config, *problem);
  CudaGemmUnit unit = gemm_unit(*problem, g, c.epilogue, desc.operands, kUnnamed);
  constexpr int kCounters = 4;
  schedule::CudaGemmLaunches made = schedule::make_launches(*problem, g, target.cuda, kCounters);
  const auto own = static_cast<uint32_t>(desc.operands.size());
  const std::array<uint32_t, 6> operands = {
      d.a.operand, d.b.operand, operand_of_d(c.epilogue),
      own,         own + 1,     problem->residual ? problem->residual->operand : 0};
  for (CudaLaunch& launch : made.launches) {
    for (TensorMapDesc& map : launch.maps) {
      map.operand = static_cast<int>(operands[size_t(map.operand)]);
    }
    for (PointerPatch& patch : launch.pointers) patch.operand = static_cast<int>(operands[size_t(patch.operand)]);
  }
  return finish(std::move(unit), std::move(made), c.epilogue, config);
}

KernelSource sm90_views_source(const KernelDesc& desc, const ContractionDesc& c, const CudaGemmDesc& d,
                               const Config& config, const Target& target) {
  std::string why;
  const auto problem = schedule::sm90_views_problem(d, c.epilogue, desc.operands, &why);
  HEDDLE_CHECK(problem.has_value(), "sm90v for a product that it does not serve: {}", why);
  const schedule::CudaGemmConfig g = schedule::sm90_config(config, *problem);
  const schedule::CudaTileProblem views = written_problem(desc, c.epilogue, d, LinesOf::kShifted);
  CudaGemmUnit unit = gemm_views_unit(*problem, g, views, c.epilogue, desc.operands, kUnnamed);
  schedule::CudaGemmLaunches made = schedule::make_launches(*problem, g, target.cuda);
  const std::array<uint32_t, 4> operands = {0, 0, operand_of_d(c.epilogue),
                                            static_cast<uint32_t>(desc.operands.size())};
  for (CudaLaunch& launch : made.launches) {
    for (TensorMapDesc& map : launch.maps) map.operand = static_cast<int>(operands[size_t(map.operand)]);
    for (PointerPatch& patch : launch.pointers) patch.operand = static_cast<int>(operands[size_t(patch.operand)]);
  }
  if (d.k > 0 && !made.launches.empty()) {
    for (const schedule::CudaOperand* o : {g.swapped ? &views.b : &views.a, g.swapped ? &views.a : &views.b}) {
      add_argument(made.launches[0], {o->text, o->block, o->pointers});
    }
  }
  return finish(std::move(unit), std::move(made), c.epilogue, config);
}

}  // namespace

KernelSource emit_cuda_contraction(const KernelDesc& desc, const ContractionDesc& c, const Config& config,
                                   const Target& target) {
  if (const auto* gemm = std::get_if<CudaGemmDesc>(&c.problem)) {
    const bool views = config.algorithm == "sm90v" || config.algorithm == "sm90vp";
    const bool copied = config.algorithm.starts_with("sm90") && !views;
    const auto make = copied ? sm90_source : views ? sm90_views_source : tile_source;
    return make(desc, c, *gemm, config, target);
  }
  KernelSource source = cuda_window_source(desc, c, std::get<WindowDesc>(c.problem), config, kUnnamed);
  source.symbol = name_kernel(source.text, config.algorithm, kUnnamed);
  source.launches.front().symbol = source.symbol;
  add_named_headers(source);
  return source;
}

}  // namespace heddle::codegen
