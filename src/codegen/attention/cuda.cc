#include "codegen/attention/cuda.h"

#include <optional>

#include "base/divide.h"
#include "base/hash.h"
#include "codegen/product/cuda/epilogue.h"
#include "codegen/product/cuda/gemm.h"
#include "codegen/text/kernel_name.h"
#include "schedule/attention/cuda/launch.h"

namespace heddle::codegen {
namespace {

using schedule::AttentionConfig;
using schedule::AttentionDesc;

std::string config_text(const AttentionDesc& a, const AttentionConfig& c) {
  const schedule::AttentionVariant variant = schedule::variant_of(a, c);
  return fmt::format(
      "struct Config {{\n"
      "  using In = {};\n"
      "  static constexpr int kConsumers = {}, kTileN = {}, kDepth = {}, kWidth = {};\n"
      "  static constexpr int kStages = {}, kQStages = {}, kBlocks = {};\n"
      "  static constexpr bool kKAlongDepth = {}, kVAlongWidth = {};\n"
      "  static constexpr bool kScores = {}, kPlain = {}, kRagged = {}, kOneTile = {};\n"
      "  static constexpr bool kDynamic = {}, kSplit = {}, kZeroIfEmpty = {}, kSink = {}, kLength = {}, kCombines = "
      "{};\n"
      "}};\n",
      wgmma_type(a.type), c.consumers, c.tile_n, round_up(a.depth, 16), round_up(a.width, 16), c.stages, c.q_stages,
      c.blocks, a.k_along_depth(), a.v_along_width(), variant.scores, variant.plain, variant.ragged, variant.one_tile,
      c.dynamic, c.splits > 1, a.zero_if_empty, a.sink.has_value(), a.length.has_value(), c.combines);
}

std::string kernel_text(const KernelHead& head, const AttentionDesc& a) {
  const auto parameter = [&](const char* type, const char* name) {
    return fmt::format("        const __grid_constant__ {}_parts::{} {},\n", head.symbol, type, name);
  };
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(tile::sm90::AttentionTraits<{0}_parts::Config>::kThreads,\n"
      "                                               {0}_parts::Config::kBlocks)\n"
      "    {0}(const __grid_constant__ tile::sm90::TensorMap q, const __grid_constant__ tile::sm90::TensorMap k,\n"
      "        const __grid_constant__ tile::sm90::TensorMap v, const __grid_constant__ tile::AttentionArgs args,\n"
      "        const __grid_constant__ {0}_parts::Scores scores,\n"
      "{2}"
      "        const __grid_constant__ {0}_parts::Epilogue epilogue) {{\n"
      "{1}  tile::sm90::attention<{0}_parts::Config>(q, k, v, args, scores, {3}, {4}, epilogue);\n"
      "}}\n",
      head.symbol, first_lines(head),
      (a.sink ? parameter("Sink", "sink") : "") + (a.length ? parameter("Length", "length") : ""),
      a.sink ? "sink" : "tile::sm90::NoSink{}", a.length ? "length" : "tile::sm90::NoLength{}");
}

std::string combine_text(const KernelHead& head, const AttentionDesc& a) {
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(128)\n"
      "    {0}_combine(const __grid_constant__ tile::AttentionArgs args,\n{2}"
      "        const __grid_constant__ {0}_parts::Epilogue epilogue) {{\n"
      "{1}  tile::sm90::attention_combine<{0}_parts::Config>(args, {3}, epilogue);\n"
      "}}\n",
      head.symbol, first_lines(head),
      a.sink ? fmt::format("        const __grid_constant__ {}_parts::Sink sink,\n", head.symbol) : "",
      a.sink ? "sink" : "tile::sm90::NoSink{}");
}

struct Functors {
  CudaFunctor scores;
  std::optional<CudaFunctor> sink, length;
  CudaFunctor epilogue;
};

std::string text_of(const AttentionDesc& a, const AttentionConfig& config, const Functors& functors,
                    const KernelHead& head) {
  return fmt::format("namespace {}_parts {{\n", head.symbol) + functors.scores.text +
         (functors.sink ? functors.sink->text : "") + (functors.length ? functors.length->text : "") +
         functors.epilogue.text + config_text(a, config) + fmt::format("}}  // namespace {}_parts\n", head.symbol) +
         kernel_text(head, a) + (config.combines ? combine_text(head, a) : "");
}

}  // namespace

KernelSource emit_cuda_attention(const schedule::KernelPlan& plan, const AttentionDesc& a, const CudaTarget& target) {
  const auto& config = plan.config.as<AttentionConfig>();
  const Functors functors = {
      a.scaled ? CudaFunctor{"struct Scores {\n  int64_t unused;\n};\n", {}, std::vector<uint8_t>(sizeof(int64_t)), {}}
               : cuda_epilogue(a.scores, plan.desc.operands, 0, "Scores"),
      a.sink ? std::optional(cuda_epilogue(*a.sink, plan.desc.operands, 0, "Sink")) : std::nullopt,
      a.length ? std::optional(cuda_epilogue(a.length->value, plan.desc.operands, 0, "Length")) : std::nullopt,
      cuda_epilogue(a.epilogue, plan.desc.operands)};
  KernelSource source;
  const std::string draft = text_of(a, config, functors, {"kernel"});
  source.symbol = fmt::format("attention_{}", hash_text(fmt::format("{}\n{}", target.architecture(), draft)).hex());
  source.text = text_of(a, config, functors, {source.symbol, plan.waits});
  source.includes = {"tile/kernel/cuda/attention/sm90.h", "tile/kernel/cuda/row.h", "tile/op/cuda/stitch.h"};
  if (config.combines) source.includes.emplace_back("tile/kernel/cuda/attention/combine.h");
  if (plan.waits) source.includes.emplace_back(kWaitHeader);
  source.launches = plan.launches;
  source.workspace_bytes = plan.workspace_bytes;
  source.counter_bytes = plan.counter_bytes;
  const auto add = [&](CudaLaunch& launch, const CudaFunctor& functor) {
    source.includes.insert(source.includes.end(), functor.includes.begin(), functor.includes.end());
    add_argument(launch, functor.block, functor.pointers);
  };
  CudaLaunch& launch = source.launches.front();
  launch.symbol = source.symbol;
  add(launch, functors.scores);
  if (functors.sink) add(launch, *functors.sink);
  if (functors.length) add(launch, *functors.length);
  add(launch, functors.epilogue);
  if (config.combines) {
    CudaLaunch& combine = source.launches.at(1);
    combine.symbol = source.symbol + "_combine";
    if (functors.sink) add(combine, *functors.sink);
    add(combine, functors.epilogue);
  }
  return source;
}

}  // namespace heddle::codegen
