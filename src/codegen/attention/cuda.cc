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
#include "schedule/sequence/phase.h"
#include "target/argument_block.h"

namespace heddle::codegen {
namespace {

using schedule::CudaAttentionConfig;

// What the kernel multiplies.
std::string in_text(const AttentionDesc& a, const CudaAttentionConfig& c) {
  if (a.type != DType::kF32) return wgmma_type(a.type);
  if (c.mfma) return "float";
  return a.tf32 ? "tile::cuda::tf32" : "tile::cuda::tf32x2";
}

std::string config_text(const AttentionDesc& a, const CudaAttentionConfig& c) {
  constexpr const char* kScores[] = {"kPlain", "kComputed", "kMixed"};
  const schedule::AttentionVariant variant = schedule::variant_of(a, c);
  return fmt::format(
             "struct Config {{\n"
             "  using In = {};\n"
             "  static constexpr int kConsumers = {}, kTileN = {}, kDepth = {}, kWidth = {}, kPanels = {};\n",
             in_text(a, c), c.consumers, c.tile_n, schedule::padded_head(a.depth), schedule::panel_width(a, c),
             c.panels) +
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

// Types, which the unit defines, and names of parameters.
using Parameters = std::vector<std::pair<std::string, std::string>>;

std::string parameters(const KernelHead& head, const Parameters& list) {
  std::string text;
  for (const auto& [type, name] : list) {
    text += fmt::format(",\n        const __grid_constant__ {}_parts::{} {}", head.symbol, type, name);
  }
  return text;
}

// The operands that are not views of TMA, the functors of a unit and the epilogue.
Parameters parameters_of(const AttentionDesc& a, const CudaAttentionConfig& c) {
  Parameters list;
  if (schedule::is_by_warps(c)) list = {{"Q", "q"}, {"K", "k"}, {"V", "v"}};
  list.emplace_back("Scores", "scores");
  if (a.sink) list.emplace_back("Sink", "sink");
  if (a.length) list.emplace_back("Length", "length");
  list.emplace_back("Epilogue", "epilogue");
  if (a.pages) list.emplace_back("Pages", "pages");
  return list;
}

const char* sink_text(const AttentionDesc& a) {
  return a.sink ? "sink" : "tile::cuda::NoSink{}";
}
const char* length_text(const AttentionDesc& a) {
  return a.length ? "length" : "tile::cuda::NoLength{}";
}

// The namespace of the kernel.
const char* machine_of(const CudaAttentionConfig& c) {
  if (c.mfma) return "gfx9";
  return schedule::is_by_warps(c) ? "sm80" : "sm90";
}

std::string kernel_text(const KernelHead& head, const AttentionDesc& a, const CudaAttentionConfig& c) {
  const bool by_warps = schedule::is_by_warps(c);
  const std::string traits =
      fmt::format("tile::{}::AttentionTraits<{}_parts::Config>::kThreads", machine_of(c), head.symbol);
  const std::string maps =
      by_warps ? ""
               : "const __grid_constant__ tile::sm90::TensorMap q, const __grid_constant__ tile::sm90::TensorMap k,\n"
                 "        const __grid_constant__ tile::sm90::TensorMap v, ";
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({2}, {3})\n"
      "    {0}({4}const __grid_constant__ tile::AttentionArgs args{5}) {{\n"
      "{1}  tile::{6}::attention<{0}_parts::Config>({7}, scores, {8}, {9}, epilogue{10});\n"
      "}}\n",
      head.symbol, first_lines(head), traits, c.blocks, maps, parameters(head, parameters_of(a, c)), machine_of(c),
      by_warps ? "args, q, k, v" : "q, k, v, args", sink_text(a), length_text(a), a.pages ? ", pages" : "");
}

std::string combine_text(const KernelHead& head, const AttentionDesc& a) {
  Parameters list;
  if (a.sink) list.emplace_back("Sink", "sink");
  list.emplace_back("Epilogue", "epilogue");
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(128)\n"
      "    {0}_combine(const __grid_constant__ tile::AttentionArgs args{2}) {{\n"
      "{1}  tile::cuda::attention_combine<{0}_parts::Config>(args, {3}, epilogue);\n"
      "}}\n",
      head.symbol, first_lines(head), parameters(head, list), sink_text(a));
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

// What the namespace <name>_parts holds.
std::string definitions_of(const AttentionDesc& a, const CudaAttentionConfig& config, const Parts& parts) {
  std::string text;
  for (const OperandText& operand : parts.operands) text += operand.text;
  return text + parts.scores.text + (parts.sink ? parts.sink->text : "") + (parts.length ? parts.length->text : "") +
         parts.epilogue.text + (parts.pages ? parts.pages->text : "") + config_text(a, config);
}

std::string text_of(const AttentionDesc& a, const CudaAttentionConfig& config, const Parts& parts,
                    const KernelHead& head) {
  return fmt::format("namespace {0}_parts {{\n{1}}}  // namespace {0}_parts\n", head.symbol,
                     definitions_of(a, config, parts)) +
         kernel_text(head, a, config) + (config.combines ? combine_text(head, a) : "");
}

std::vector<std::string> includes_of(const CudaAttentionConfig& config) {
  const bool by_warps = schedule::is_by_warps(config);
  std::vector<std::string> includes = {
      config.mfma ? "tile/kernel/hip/attention.h" : fmt::format("tile/kernel/cuda/attention/{}.h", machine_of(config)),
      "tile/kernel/cuda/row.h", "tile/op/cuda/stitch.h"};
  if (by_warps) includes.emplace_back("tile/kernel/cuda/operand/operand.h");
  return includes;
}

// Appends the arguments of the first launch, in the order of parameters_of().
void add_arguments(CudaLaunch& launch, std::vector<std::string>& includes, const Parts& parts) {
  const auto add = [&](const CudaFunctor& functor) {
    includes.insert(includes.end(), functor.includes.begin(), functor.includes.end());
    add_argument(launch, functor.block, functor.pointers);
  };
  for (const OperandText& operand : parts.operands) add(operand);
  add(parts.scores);
  if (parts.sink) add(*parts.sink);
  if (parts.length) add(*parts.length);
  add(parts.epilogue);
  if (parts.pages) add(*parts.pages);
}

}  // namespace

CudaPhase attention_phase(const schedule::KernelPlan& plan, const AttentionDesc& a) {
  const auto& config = plan.config.as<CudaAttentionConfig>();
  const Parts parts = parts_of(a, plan);
  CudaPhase phase;
  phase.includes = includes_of(config);
  phase.launch = plan.launches.front();
  add_arguments(phase.launch, phase.includes, parts);
  phase.types = {"tile::AttentionArgs"};
  std::string list = "const tile::AttentionArgs& args";
  for (const auto& [type, name] : parameters_of(a, config)) {
    phase.types.push_back(fmt::format("{}_parts::{}", kStandIn, type));
    list += fmt::format(", const {}& {}", type, name);
  }
  const char* pages = a.pages ? ", pages" : ", tile::cuda::NoPages{}";
  const std::string ahead = schedule::loads_ahead(a)
                                ? fmt::format(
                                      "__device__ __forceinline__ void ahead({}, const unsigned block) {{\n"
                                      "  tile::sm80::attention_ahead<Config>(args, k, v, {}{}, block);\n"
                                      "}}\n",
                                      list, length_text(a), pages)
                                : "";
  phase.definitions = fmt::format(
      "namespace {0}_parts {{\n{1}"
      "{6}"
      "__device__ __forceinline__ void run({2}, uint8_t*, const unsigned block) {{\n"
      "  tile::sm80::attention_block<Config>(args, q, k, v, scores, {3}, {4}, epilogue{5}, block);\n"
      "}}\n"
      "}}  // namespace {0}_parts\n",
      kStandIn, definitions_of(a, config, parts), list, sink_text(a), length_text(a), pages, ahead);
  return phase;
}

KernelSource emit_cuda_attention(const schedule::KernelPlan& plan, const AttentionDesc& a, const GpuTarget& target) {
  const auto& config = plan.config.as<CudaAttentionConfig>();
  const Parts parts = parts_of(a, plan);
  KernelSource source;
  const std::string draft = text_of(a, config, parts, {"kernel"});
  source.symbol = fmt::format("attention_{}", hash_text(fmt::format("{}\n{}", target.architecture(), draft)).hex());
  source.text = text_of(a, config, parts, {source.symbol, plan.waits});
  source.includes = includes_of(config);
  if (config.combines) source.includes.emplace_back("tile/kernel/cuda/attention/combine.h");
  if (plan.waits) source.includes.emplace_back(kWaitHeader);
  source.launches = plan.launches;
  source.workspace_bytes = plan.workspace_bytes;
  source.counter_bytes = plan.counter_bytes;
  source.launches.front().symbol = source.symbol;
  add_arguments(source.launches.front(), source.includes, parts);
  if (config.combines) {
    CudaLaunch& combine = source.launches.at(1);
    combine.symbol = source.symbol + "_combine";
    if (parts.sink) add_argument(combine, parts.sink->block, parts.sink->pointers);
    add_argument(combine, parts.epilogue.block, parts.epilogue.pointers);
  }
  return source;
}

}  // namespace heddle::codegen
