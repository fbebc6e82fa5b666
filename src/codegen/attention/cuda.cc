#include "codegen/attention/cuda.h"

#include <cstddef>
#include <optional>

#include "base/divide.h"
#include "base/hash.h"
#include "codegen/product/cuda/epilogue.h"
#include "codegen/product/cuda/gemm.h"
#include "codegen/product/cuda/operand.h"
#include "codegen/text/kernel_name.h"
#include "schedule/attention/cuda/launch.h"
#include "schedule/attention/cuda/mma_choice.h"
#include "schedule/attention/cuda/model.h"
#include "target/argument_block.h"

namespace heddle::codegen {
namespace {

using schedule::CudaAttentionConfig;

// What the kernel multiplies.
std::string in_text(const AttentionDesc& a) {
  if (a.type != DType::kF32) return wgmma_type(a.type);
  return a.tf32 ? "tile::cuda::tf32" : "tile::cuda::tf32x2";
}

std::string config_text(const AttentionDesc& a, const CudaAttentionConfig& c) {
  constexpr const char* kScores[] = {"kPlain", "kComputed", "kMixed"};
  const schedule::AttentionVariant variant = schedule::variant_of(a, c);
  return fmt::format(
             "struct Config {{\n"
             "  using In = {};\n"
             "  static constexpr int kConsumers = {}, kTileN = {}, kDepth = {}, kWidth = {}, kPanels = {};\n",
             in_text(a), c.consumers, c.tile_n, schedule::padded_head(a.depth), schedule::panel_width(a, c), c.panels) +
         (schedule::is_by_warps(c)
              ? fmt::format("  static constexpr int kStages = {}, kKeyWarps = {};\n", c.stages, c.key_warps)
              : fmt::format("  static constexpr int kStages = {}, kQStages = {}, kBlocks = {};\n"
                            "  static constexpr bool kKAlongDepth = {}, kVAlongWidth = {};\n"
                            "  static constexpr bool kOneTile = {}, kDynamic = {};\n",
                            c.stages, c.q_stages, c.blocks, a.k_along_depth(), a.v_along_width(), variant.one_tile,
                            c.dynamic)) +
         fmt::format(
             "  static constexpr auto kScores = tile::AttentionScores::{};\n"
             "  static constexpr auto kSplit = tile::AttentionSplit::{};\n"
             "  static constexpr bool kRagged = {}, kZeroIfEmpty = {}, kLength = {};\n"
             "{}}};\n",
             kScores[static_cast<int>(variant.scores)],
             c.combines     ? "kCombine"
             : c.splits > 1 ? "kLastBlock"
                            : "kNone",
             variant.ragged, a.zero_if_empty, a.length.has_value(),
             a.pages ? fmt::format("  static constexpr int kPage = {};\n", a.pages->keys) : "");
}

// The operands that are not views of TMA, the functors of a unit and the epilogue.
std::string parameters(const KernelHead& head, const std::vector<std::pair<std::string, std::string>>& list) {
  std::string text;
  for (const auto& [type, name] : list) {
    text += fmt::format(",\n        const __grid_constant__ {}_parts::{} {}", head.symbol, type, name);
  }
  return text;
}

std::string kernel_text(const KernelHead& head, const AttentionDesc& a, const CudaAttentionConfig& c) {
  const bool by_warps = schedule::is_by_warps(c);
  std::vector<std::pair<std::string, std::string>> list;
  if (by_warps) list = {{"Q", "q"}, {"K", "k"}, {"V", "v"}};
  list.emplace_back("Scores", "scores");
  if (a.sink) list.emplace_back("Sink", "sink");
  if (a.length) list.emplace_back("Length", "length");
  list.emplace_back("Epilogue", "epilogue");
  if (a.pages) list.emplace_back("Pages", "pages");
  const std::string traits =
      fmt::format("tile::{}::AttentionTraits<{}_parts::Config>::kThreads", by_warps ? "sm80" : "sm90", head.symbol);
  const std::string maps =
      by_warps ? ""
               : "const __grid_constant__ tile::sm90::TensorMap q, const __grid_constant__ tile::sm90::TensorMap k,\n"
                 "        const __grid_constant__ tile::sm90::TensorMap v, ";
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({2}, {3})\n"
      "    {0}({4}const __grid_constant__ tile::AttentionArgs args{5}) {{\n"
      "{1}  tile::{6}::attention<{0}_parts::Config>({7}, scores, {8}, {9}, epilogue{10});\n"
      "}}\n",
      head.symbol, first_lines(head), traits, c.blocks, maps, parameters(head, list), by_warps ? "sm80" : "sm90",
      by_warps ? "args, q, k, v" : "q, k, v, args", a.sink ? "sink" : "tile::cuda::NoSink{}",
      a.length ? "length" : "tile::cuda::NoLength{}", a.pages ? ", pages" : "");
}

std::string combine_text(const KernelHead& head, const AttentionDesc& a) {
  std::vector<std::pair<std::string, std::string>> list;
  if (a.sink) list.emplace_back("Sink", "sink");
  list.emplace_back("Epilogue", "epilogue");
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(128)\n"
      "    {0}_combine(const __grid_constant__ tile::AttentionArgs args{2}) {{\n"
      "{1}  tile::cuda::attention_combine<{0}_parts::Config>(args, {3}, epilogue);\n"
      "}}\n",
      head.symbol, first_lines(head), parameters(head, list), a.sink ? "sink" : "tile::cuda::NoSink{}");
}

// All that the text is made of: operands of mma.sync, functors.
struct Parts {
  std::vector<OperandText> operands;
  CudaFunctor scores;
  std::optional<CudaFunctor> sink, length;
  CudaFunctor epilogue;
  std::optional<CudaFunctor> pages;
};

CudaFunctor pages_of(const schedule::KeyPages& p, int64_t keys) {
  tile::AttentionPages args{};
  args.offset = p.offset, args.sequence = p.sequence, args.entry = p.entry;
  args.heads = static_cast<int32_t>(p.heads), args.by_heads = tile::GemmDivisor::of(args.heads);
  args.entries = static_cast<int32_t>(ceil_div(keys, p.keys)), args.pool = static_cast<int32_t>(p.pool);
  args.clamps = p.clamps ? 1 : 0;
  CudaFunctor functor;
  functor.text = fmt::format("using Pages = tile::cuda::PageTable<{}>;\n", storage_type(p.entries));
  functor.block = argument_bytes(args);
  functor.pointers = {{0, offsetof(tile::AttentionPages, table), static_cast<int>(p.table)}};
  return functor;
}

Parts parts_of(const AttentionDesc& a, const schedule::KernelPlan& plan) {
  const std::vector<schedule::Operand>& operands = plan.desc.operands;
  Parts parts;
  if (schedule::is_by_warps(plan.config.as<CudaAttentionConfig>())) {
    parts.operands = {matrix_text(a.q, a.m, false, "Q"), matrix_text(a.k, a.keys_in_line(), false, "K"),
                      matrix_text(a.v, a.width, false, "V")};
  }
  parts.scores =
      a.scaled ? CudaFunctor{"struct Scores {\n  int64_t unused;\n};\n", {}, std::vector<uint8_t>(sizeof(int64_t)), {}}
               : cuda_epilogue(a.scores, operands, 0, "Scores");
  if (a.sink) parts.sink = cuda_epilogue(*a.sink, operands, 0, "Sink");
  if (a.length) parts.length = cuda_epilogue(a.length->value, operands, 0, "Length");
  parts.epilogue = cuda_epilogue(a.epilogue, operands);
  if (a.pages) parts.pages = pages_of(*a.pages, a.n);
  return parts;
}

std::string text_of(const AttentionDesc& a, const CudaAttentionConfig& config, const Parts& parts,
                    const KernelHead& head) {
  std::string text = fmt::format("namespace {}_parts {{\n", head.symbol);
  for (const OperandText& operand : parts.operands) text += operand.text;
  return text + parts.scores.text + (parts.sink ? parts.sink->text : "") + (parts.length ? parts.length->text : "") +
         parts.epilogue.text + (parts.pages ? parts.pages->text : "") + config_text(a, config) +
         fmt::format("}}  // namespace {}_parts\n", head.symbol) + kernel_text(head, a, config) +
         (config.combines ? combine_text(head, a) : "");
}

}  // namespace

KernelSource emit_cuda_attention(const schedule::KernelPlan& plan, const AttentionDesc& a, const CudaTarget& target) {
  const auto& config = plan.config.as<CudaAttentionConfig>();
  const bool by_warps = schedule::is_by_warps(config);
  const Parts parts = parts_of(a, plan);
  KernelSource source;
  const std::string draft = text_of(a, config, parts, {"kernel"});
  source.symbol = fmt::format("attention_{}", hash_text(fmt::format("{}\n{}", target.architecture(), draft)).hex());
  source.text = text_of(a, config, parts, {source.symbol, plan.waits});
  source.includes = {by_warps ? "tile/kernel/cuda/attention/sm80.h" : "tile/kernel/cuda/attention/sm90.h",
                     "tile/kernel/cuda/row.h", "tile/op/cuda/stitch.h"};
  if (by_warps) source.includes.emplace_back("tile/kernel/cuda/operand/operand.h");
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
  for (const OperandText& operand : parts.operands) add(launch, operand);
  add(launch, parts.scores);
  if (parts.sink) add(launch, *parts.sink);
  if (parts.length) add(launch, *parts.length);
  add(launch, parts.epilogue);
  if (parts.pages) add(launch, *parts.pages);
  if (config.combines) {
    CudaLaunch& combine = source.launches.at(1);
    combine.symbol = source.symbol + "_combine";
    if (parts.sink) add(combine, *parts.sink);
    add(combine, parts.epilogue);
  }
  return source;
}

}  // namespace heddle::codegen
