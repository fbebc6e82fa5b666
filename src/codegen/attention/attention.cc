#include "codegen/attention/attention.h"

#include "base/divide.h"
#include "base/hash.h"
#include "codegen/product/cuda/epilogue.h"
#include "codegen/product/cuda/gemm.h"
#include "codegen/text/includes.h"

namespace heddle::codegen {
namespace {

using schedule::AttentionConfig;
using schedule::AttentionDesc;

std::string config_text(const AttentionDesc& a, const AttentionConfig& c) {
  return fmt::format(
      "struct Config {{\n"
      "  using In = {};\n"
      "  static constexpr int kConsumers = {}, kTileN = {}, kDepth = {}, kWidth = {};\n"
      "  static constexpr int kStages = {}, kQStages = {};\n"
      "  static constexpr bool kKAlongDepth = {}, kVAlongWidth = {}, kScaled = {}, kOneTile = {};\n"
      "}};\n",
      wgmma_type(a.type), c.consumers, c.tile_n, round_up(a.depth, 16), round_up(a.width, 16), c.stages, c.q_stages,
      a.k_along_depth(), a.v_along_width(), a.scaled, a.n <= c.tile_n);
}

std::string kernel_text(const std::string& symbol) {
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(tile::sm90::AttentionTraits<{0}_parts::Config>::kThreads, 1)\n"
      "    {0}(const __grid_constant__ tile::sm90::TensorMap q, const __grid_constant__ tile::sm90::TensorMap k,\n"
      "        const __grid_constant__ tile::sm90::TensorMap v, const __grid_constant__ tile::AttentionArgs args,\n"
      "        const __grid_constant__ {0}_parts::Scores scores,\n"
      "        const __grid_constant__ {0}_parts::Epilogue epilogue) {{\n"
      "  tile::sm90::attention<{0}_parts::Config>(q, k, v, args, scores, epilogue);\n"
      "}}\n",
      symbol);
}

KernelSource write(const schedule::KernelDesc& desc, const AttentionDesc& a, const AttentionConfig& config,
                   const CudaTarget& target, const std::string& symbol) {
  const CudaFunctor scores =
      a.scaled ? CudaFunctor{"struct Scores {\n  int64_t unused;\n};\n", std::vector<uint8_t>(sizeof(int64_t)), {}}
               : cuda_epilogue(a.scores, desc.operands, 0, "Scores");
  const CudaFunctor epilogue = cuda_epilogue(a.epilogue, desc.operands);
  KernelSource source;
  source.symbol = symbol;
  source.includes = {"tile/kernel/cuda/attention/sm90.h", "tile/kernel/cuda/row.h", "tile/op/cuda/stitch.h"};
  source.text = fmt::format("namespace {}_parts {{\n", symbol) + scores.text + epilogue.text + config_text(a, config) +
                fmt::format("}}  // namespace {}_parts\n", symbol) + kernel_text(symbol);
  CudaLaunch launch = schedule::plan_launch(a, config, target);
  launch.symbol = symbol;
  for (const CudaFunctor* functor : {&scores, &epilogue}) {
    for (PointerPatch patch : functor->pointers) {
      patch.argument = static_cast<int>(launch.arguments.size());
      launch.pointers.push_back(patch);
    }
    launch.arguments.push_back(functor->block);
  }
  source.launches = {std::move(launch)};
  add_named_headers(source);
  return source;
}

}  // namespace

KernelSource emit_cuda_attention(const schedule::KernelDesc& desc, const AttentionDesc& attention,
                                 const schedule::Config& config, const Target& target) {
  // The symbol carries a hash of the text written with a placeholder for it.
  const std::string draft = write(desc, attention, config.as<AttentionConfig>(), target.cuda, "kernel").text;
  const std::string symbol =
      fmt::format("attention_{}", hash_text(fmt::format("{}\n{}", target.cuda.architecture(), draft)).hex());
  return write(desc, attention, config.as<AttentionConfig>(), target.cuda, symbol);
}

}  // namespace heddle::codegen
