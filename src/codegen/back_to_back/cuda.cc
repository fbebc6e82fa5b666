#include "codegen/back_to_back/cuda.h"

#include <fmt/format.h>

#include "codegen/product/cuda/epilogue.h"
#include "codegen/product/cuda/gemm.h"
#include "codegen/product/cuda/operand.h"
#include "codegen/text/kernel_name.h"
#include "schedule/back_to_back/cuda.h"

namespace heddle::codegen {
namespace {

using schedule::BackToBackTasks;
using schedule::CudaBackToBackConfig;

// All that the text is made of.
struct ProductParts {
  OperandText a, w0, w1;
  CudaFunctor between, epilogue;
};

ProductParts parts_of(const BackToBackTasks& tasks) {
  const schedule::Product& second = tasks.second.product;
  OperandTexts first = operand_texts(tasks.first, schedule::LinesOf::kNone);
  return {std::move(first.a), std::move(first.b), matrix_text(second.b, second.n, false, "OperandW1"),
          cuda_epilogue(tasks.first.epilogue, tasks.first.operands, 0, "Between"),
          cuda_epilogue(tasks.second.epilogue, tasks.second.operands)};
}

std::string config_text(const BackToBackTasks& tasks, const CudaBackToBackConfig& c) {
  const schedule::Epilogue& epilogue = tasks.second.epilogue;
  const bool narrow = !epilogue.stores.empty() && size_of(tasks.second.operands[epilogue.stores[0].operand].dtype) <= 2;
  return fmt::format(
      "struct Config {{\n"
      "  using In = {};\n"
      "  static constexpr int kTileM = {}, kTileK = {}, kStages = {};\n"
      "  static constexpr int kColumns0 = {}, kTileN = {}, kNeighbours = {};\n"
      "  static constexpr int kWarpsM = {}, kWarpsN = {};\n"
      "  static constexpr bool kInRegisters = {};\n"
      "}};\n",
      cuda_storage(tasks.first.product.multiply_a), c.tile_m, c.tile_k, c.stages, tasks.columns0(c), c.tile_n,
      narrow ? 8 : 4, c.warps_m, c.warps_n, c.in_registers);
}

std::string text_of(const ProductParts& parts, const std::string& config, int threads, const KernelHead& head) {
  const std::string& symbol = head.symbol;
  const std::string types =
      fmt::format("using A = {};\nusing W0 = {};\nusing W1 = {};\n", parts.a.type, parts.w0.type, parts.w1.type);
  return fmt::format(
      "namespace {0}_parts {{\n{1}}}  // namespace {0}_parts\n"
      "extern \"C\" __global__ void __launch_bounds__({2})\n"
      "    {0}(const __grid_constant__ tile::BackToBackArgs args, const __grid_constant__ {0}_parts::A a,\n"
      "        const __grid_constant__ {0}_parts::W0 w0, const __grid_constant__ {0}_parts::W1 w1,\n"
      "        const __grid_constant__ {0}_parts::Between between, const __grid_constant__ {0}_parts::Epilogue "
      "epilogue) "
      "{{\n"
      "{3}  tile::sm80::back_to_back<{0}_parts::Config>(args, a, w0, w1, between, epilogue);\n"
      "}}\n",
      symbol, parts.a.text + parts.w0.text + parts.w1.text + types + parts.between.text + parts.epilogue.text + config,
      threads, first_lines(head));
}

std::string operators(const schedule::Epilogue& epilogue) {
  std::vector<schedule::ExprId> roots;
  for (const auto& store : epilogue.stores) roots.push_back(store.value);
  for (const auto& reduction : epilogue.reductions) roots.push_back(reduction.value);
  return operators_of(epilogue.pool, roots);
}

}  // namespace

KernelSource emit_cuda_back_to_back(const schedule::KernelPlan& plan, const schedule::CudaBackToBackDesc& desc) {
  const auto& config = plan.config.as<CudaBackToBackConfig>();
  const BackToBackTasks tasks = schedule::tasks_of(desc, plan.desc.operands);
  const ProductParts parts = parts_of(tasks);
  KernelSource source;
  source.includes = {"tile/kernel/cuda/back_to_back.h", "tile/kernel/cuda/operand/operand.h", "tile/kernel/cuda/row.h",
                     "tile/op/cuda/stitch.h"};
  source.launches = plan.launches;
  CudaLaunch& launch = source.launches.front();
  for (const CudaFunctor* part : {static_cast<const CudaFunctor*>(&parts.a), static_cast<const CudaFunctor*>(&parts.w0),
                                  static_cast<const CudaFunctor*>(&parts.w1), &parts.between, &parts.epilogue}) {
    source.includes.insert(source.includes.end(), part->includes.begin(), part->includes.end());
    add_argument(launch, part->block, part->pointers);
  }
  const std::string prefix =
      fmt::format("back_to_back_{}x{}x{}{}{}", config.tile_m, tasks.columns0(config), config.tile_n,
                  operators(tasks.first.epilogue), operators(tasks.second.epilogue));
  const std::string configuration = config_text(tasks, config);
  name_kernel(
      source, prefix, [&](const KernelHead& head) { return text_of(parts, configuration, config.threads(), head); },
      plan.waits);
  launch.symbol = source.symbol;
  source.workspace_bytes = plan.workspace_bytes;
  source.counter_bytes = plan.counter_bytes;
  return source;
}

}  // namespace heddle::codegen
