#include "codegen/attention/attention.h"

#include <algorithm>
#include <numbers>

#include "base/check.h"
#include "base/divide.h"
#include "base/hash.h"
#include "codegen/product/cuda/epilogue.h"
#include "codegen/text/includes.h"
#include "schedule/product/cuda/gemm.h"
#include "target/argument_block.h"

namespace heddle {

// All members have four bytes, one of them is a float.
template <>
inline constexpr bool kNamesPadding<tile::AttentionArgs> = alignof(tile::AttentionArgs) == 4;

}  // namespace heddle

namespace heddle::codegen {
namespace {

using schedule::AttentionDesc;
using schedule::Config;

std::string config_text(const AttentionDesc& a, const Config& c) {
  return fmt::format(
      "struct Config {{\n"
      "  using In = {};\n"
      "  static constexpr int kConsumers = {}, kTileN = {}, kDepth = {}, kWidth = {};\n"
      "  static constexpr int kStages = {}, kQStages = {};\n"
      "  static constexpr bool kKAlongDepth = {}, kVAlongWidth = {}, kScaled = {}, kOneTile = {};\n"
      "}};\n",
      schedule::tile_type(a.type, true), c.micro_m, c.tile_n, round_up(a.depth, 16), round_up(a.width, 16), c.stages,
      c.splits, a.k_along_depth(), a.v_along_width(), a.scaled, a.n <= c.tile_n);
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

CudaLaunch launch_of(const AttentionDesc& a, const Config& c, const CudaTarget& target, const std::string& symbol) {
  const int64_t depth = round_up(a.depth, 16), width = round_up(a.width, 16);
  const bool k_along = a.k_along_depth(), v_along = !a.v_along_width();
  const schedule::AttentionMap q = attention_map(a.q, a.m, a.depth, true, c.tile_m);
  const schedule::AttentionMap k = attention_map(a.k, a.n, a.depth, k_along, k_along ? c.tile_n : depth);
  const schedule::AttentionMap v = attention_map(a.v, a.width, a.n, v_along, v_along ? width : c.tile_n);
  tile::AttentionArgs args{};
  args.m = static_cast<int32_t>(a.m), args.n = static_cast<int32_t>(a.n), args.width = static_cast<int32_t>(a.width);
  args.tiles_m = static_cast<int32_t>((a.m + c.tile_m - 1) / c.tile_m);
  args.units = static_cast<int32_t>(a.batch) * args.tiles_m;
  args.key_tiles = static_cast<int32_t>((a.n + c.tile_n - 1) / c.tile_n);
  args.scale = static_cast<float>(a.scale * std::numbers::log2e);
  args.q = q.place, args.k = k.place, args.v = v.place;
  args.by_tiles = tile::GemmDivisor::of(args.tiles_m);
  CudaLaunch launch;
  launch.symbol = symbol;
  launch.grid[0] = static_cast<uint32_t>(std::min(args.units, target.sms));
  launch.block = static_cast<uint32_t>(128 * (c.micro_m + 1));
  launch.shared_bytes = static_cast<uint32_t>(tile::attention_shared_bytes(
      static_cast<int>(c.tile_m), static_cast<int>(c.tile_n), static_cast<int>(depth), static_cast<int>(width),
      a.k_along_depth(), a.v_along_width(), static_cast<int>(c.splits), static_cast<int>(c.stages)));
  launch.maps = {q.map, k.map, v.map};
  launch.arguments = {argument_bytes(args)};
  return launch;
}

KernelSource write(const schedule::KernelDesc& desc, const AttentionDesc& a, const Config& config,
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
  CudaLaunch launch = launch_of(a, config, target, symbol);
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

KernelSource emit_cuda_attention(const schedule::KernelDesc& desc, const AttentionDesc& attention, const Config& config,
                                 const Target& target) {
  // The symbol carries a hash of the text written with a placeholder for it.
  const std::string draft = write(desc, attention, config, target.cuda, "kernel").text;
  const std::string symbol =
      fmt::format("attention_{}", hash_text(fmt::format("{}\n{}", target.cuda.architecture(), draft)).hex());
  return write(desc, attention, config, target.cuda, symbol);
}

}  // namespace heddle::codegen
