#include "codegen/cuda_tile.h"

#include <fmt/format.h>

#include "schedule/cuda_direct.h"
#include "schedule/cuda_lines.h"

namespace heddle::codegen {
namespace {

using schedule::CudaTileConfig;
using schedule::CudaTileProblem;
using Engine = CudaTileConfig::Engine;

const char* header_of(Engine engine) {
  switch (engine) {
    case Engine::kMma:
      return "tile/kernel/cuda/gemm_sm80.h";
    case Engine::kSimt:
      return "tile/kernel/cuda/gemm_simt.h";
    case Engine::kFew:
      return "tile/kernel/cuda/gemm_few.h";
    case Engine::kLines:
      return "tile/kernel/cuda/gemm_lines.h";
    case Engine::kDirect:
      return "tile/kernel/cuda/gemm_direct.h";
  }
  return "";
}

std::string config_text(const CudaTileProblem& p, const CudaTileConfig& c) {
  const char* store = c.splits > 1 ? "kPartial" : "kEpilogue";
  if (c.engine == Engine::kFew) {
    return fmt::format(
        "struct Config {{\n"
        "  using In = {};\n"
        "  static constexpr int kFew = {}, kWarps = {}, kRows = {};\n"
        "  static constexpr bool kSwapped = {};\n"
        "  static constexpr auto kStore = tile::GemmStore::{};\n"
        "}};\n",
        multiplied_type(p, c, true), c.tile_m, c.warps_m, c.rows, c.swapped, store);
  }
  if (c.engine == Engine::kLines) {
    return fmt::format(
        "struct Config {{\n"
        "  using In = {};\n"
        "  static constexpr int kTileM = {}, kTileN = {}, kWarpsM = {}, kWarpsK = {}, kStages = {}, kParts = {};\n"
        "  static constexpr int kAlignA = {}, kAlignB = {}, kNeighbours = {};\n"
        "  static constexpr bool kSwapped = {};\n"
        "  static constexpr auto kStore = tile::GemmStore::{};\n"
        "}};\n",
        multiplied_type(p, c, true), c.tile_m, c.tile_n, c.warps_m, c.warps_n, c.stages, c.parts,
        schedule::line_alignment(c.swapped ? p.b : p.a), schedule::line_alignment(c.swapped ? p.a : p.b),
        schedule::lines_neighbours(p, c), c.swapped, store);
  }
  if (c.engine == Engine::kDirect) {
    return fmt::format(
        "struct Config {{\n"
        "  using In = {};\n"
        "  static constexpr int kBlocksM = {}, kBlocksN = {}, kWarpsM = {}, kWarpsN = {}, kWarpsK = {}, kChunks = {};\n"
        "  static constexpr bool kWholeK = {};\n"
        "}};\n",
        multiplied_type(p, c, true), schedule::direct_blocks_m(c), schedule::direct_blocks_n(c), c.warps_m, c.warps_n,
        c.parts, c.stages, schedule::direct_whole(p, c));
  }
  const std::string in =
      c.engine == Engine::kMma
          ? fmt::format("  using InA = {};\n  using InB = {};\n  static constexpr int kNeighbours = {};\n",
                        multiplied_type(p, c, true), multiplied_type(p, c, false), p.out_bytes <= 2 ? 8 : 4)
          : fmt::format("  using In = {};\n", multiplied_type(p, c, true));
  return fmt::format(
      "struct Config {{\n"
      "{}"
      "  static constexpr int kTileM = {}, kTileN = {}, kTileK = {}, kWarpsM = {}, kWarpsN = {}, kStages = {};\n"
      "  static constexpr auto kStore = tile::GemmStore::{};\n"
      "}};\n",
      in, c.tile_m, c.tile_n, c.tile_k, c.warps_m, c.warps_n, c.stages, store);
}

std::string direct_text(const CudaTileConfig& c, const std::string& symbol) {
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({0}, 1)\n"
      "    {1}(const __grid_constant__ {1}_parts::A a, const __grid_constant__ {1}_parts::B b,\n"
      "        const __grid_constant__ {1}_parts::Epilogue epilogue) {{\n"
      "  tile::cuda::gemm_direct<{1}_parts::Config>(a, b, epilogue);\n"
      "}}\n",
      c.threads(), symbol);
}

std::string multiply_text(const CudaTileConfig& c, const std::string& symbol) {
  if (c.engine == Engine::kDirect) return direct_text(c, symbol);
  const bool partial = c.splits > 1;
  const char* kernel = c.engine == Engine::kMma     ? "tile::sm80::gemm"
                       : c.engine == Engine::kSimt  ? "tile::cuda::gemm_simt"
                       : c.engine == Engine::kLines ? "tile::cuda::gemm_lines"
                                                    : "tile::cuda::gemm_few";
  return fmt::format(
      "extern \"C\" __global__ void {5}__launch_bounds__({0}, {6})\n"
      "    {1}(const __grid_constant__ tile::{7} args, const __grid_constant__ {1}_parts::A a,\n"
      "        const __grid_constant__ {1}_parts::B b{2}) {{\n"
      "  {3}<{1}_parts::Config>(args, a, b, {4});\n"
      "}}\n",
      c.threads(), symbol,
      partial ? "" : fmt::format(",\n        const __grid_constant__ {}_parts::Epilogue epilogue", symbol), kernel,
      partial ? "tile::cuda::NoEpilogue{}" : "epilogue",
      c.parts > 1 ? fmt::format("__cluster_dims__({}, 1, 1) ", c.parts) : "",
      c.engine == Engine::kLines ? schedule::lines_resident(c) : 1,
      c.engine == Engine::kLines ? "GemmPartsArgs" : "GemmArgs");
}

}  // namespace

CudaGemmUnit tile_unit(const CudaTileProblem& p, const CudaTileConfig& c, const schedule::Epilogue& epilogue,
                       const std::vector<schedule::Operand>& operands, const std::string& symbol) {
  const bool reduce = c.splits > 1 || p.k == 0;
  CudaGemmUnit unit;
  if (p.k > 0) unit.includes = {header_of(c.engine), "tile/kernel/cuda/operand.h"};
  if (reduce) unit.includes.emplace_back("tile/kernel/cuda/gemm_reduce.h");
  for (const char* path : {"tile/kernel/cuda/row.h", "tile/op/cuda/stitch.h"}) unit.includes.emplace_back(path);
  unit.epilogue = cuda_epilogue(epilogue, operands);
  std::string& text = unit.text;
  text = fmt::format("namespace {}_parts {{\n", symbol) + unit.epilogue.text;
  if (p.k > 0) {
    const schedule::CudaOperand& a = c.swapped ? p.b : p.a;
    const schedule::CudaOperand& b = c.swapped ? p.a : p.b;
    text += a.text + b.text + fmt::format("using A = {};\n", a.type);
    constexpr double kLarge = 8 << 20;
    const bool once = c.engine == CudaTileConfig::Engine::kFew && b.bytes > kLarge;
    text += once ? fmt::format("struct B : {} {{\n  static constexpr bool kStream = true;\n}};\n", b.type)
                 : fmt::format("using B = {};\n", b.type);
    text += config_text(p, c);
  }
  text += fmt::format("}}  // namespace {}_parts\n", symbol);
  if (p.k > 0) text += multiply_text(c, symbol);
  if (reduce) {
    text += fmt::format(
        "extern \"C\" __global__ void __launch_bounds__(128)\n"
        "    {0}_reduce(const __grid_constant__ tile::GemmReduceArgs args,\n"
        "               const __grid_constant__ {0}_parts::Epilogue epilogue) {{\n"
        "  tile::cuda::gemm_reduce<{1}>(args, epilogue);\n"
        "}}\n",
        symbol, schedule::cuda_storage(p.accumulator()));
  }
  return unit;
}

}  // namespace heddle::codegen
