// Which configurations of the kernel without shared memory a product may take, and what they are expected to cost.
#include <algorithm>
#include <cmath>

#include "schedule/product/cuda/engine.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kChunkBytes = 64;  // of k, that a warp loads at a time
constexpr int kMostWarps = 16, kMostChunks = 6;

int64_t line_bytes(const CudaTileProblem& p) {
  return p.k * static_cast<int64_t>(size_of(p.a_in));
}
// Blocks of 16 rows and 8 columns that a warp has.
int blocks_m(const CudaTileConfig& c) {
  return c.tile_m / (16 * c.warps_m);
}
int blocks_n(const CudaTileConfig& c) {
  return c.tile_n / (8 * c.warps_n);
}

// Pieces of 16 bytes that a lane loads.
int pieces_of(const CudaTileConfig& c) {
  return (2 * blocks_m(c) + blocks_n(c)) * c.stages;
}
int sums_of(const CudaTileConfig& c) {
  return 4 * blocks_m(c) * blocks_n(c);
}

struct Shape {
  int blocks_m, blocks_n, warps_m, warps_n;
};
constexpr Shape kShapes[] = {{1, 1, 1, 1}, {1, 2, 1, 1}, {1, 4, 1, 1}, {2, 1, 1, 1}, {2, 2, 1, 1}, {2, 4, 1, 1},
                             {1, 2, 1, 2}, {1, 2, 2, 1}, {1, 2, 2, 2}, {1, 2, 4, 1}, {1, 4, 1, 2}, {1, 4, 2, 1},
                             {1, 4, 3, 1}, {1, 4, 4, 1}, {2, 4, 1, 2}, {2, 4, 1, 4}, {1, 4, 2, 4}};

// The sums of all warps but the first of each tile.
int direct_shared_bytes(const CudaTileProblem&, const CudaTileConfig& c) {
  constexpr int kSumBytes = 4;
  return c.warps_m * c.warps_n * (c.parts - 1) * sums_of(c) * 32 * kSumBytes;
}

// None where it is not for the problem: operands in lines along k at multiples of 16 bytes, 2 MiB in all.
std::vector<CudaTileConfig> direct_configs(const CudaTileProblem& p, const CudaTarget& target) {
  std::vector<CudaTileConfig> found;
  constexpr double kSmall = 2 << 20;
  if (p.k == 0 || p.splits_f32() || p.a_in != p.b_in || !p.a.lines || !p.b.lines || p.bytes() > kSmall) return found;
  if (std::min(line_alignment(p.a), line_alignment(p.b)) < 16) return found;
  const int64_t chunks = ceil_div(line_bytes(p), kChunkBytes);
  for (const Shape& shape : kShapes) {
    const int64_t rows = 16 * shape.blocks_m * shape.warps_m, columns = 8 * shape.blocks_n * shape.warps_n;
    if ((rows > 16 && rows >= p.m + 16) || (columns > 8 && columns >= p.n + 8)) continue;
    for (const int parts : {1, 2, 3, 4, 6, 8, 9, 12, 16}) {
      const int64_t each = ceil_div(chunks, parts);
      const int tiles = shape.warps_m * shape.warps_n;
      if (each > kMostChunks || (parts - 1) * each >= chunks || tiles * parts > kMostWarps) continue;
      if (parts > 4 && tiles > 1) continue;
      CudaTileConfig c;
      c.engine = CudaTileConfig::Engine::kDirect;
      c.tile_m = static_cast<int>(rows), c.tile_n = static_cast<int>(columns);
      c.warps_m = shape.warps_m, c.warps_n = shape.warps_n;
      c.parts = parts, c.stages = static_cast<int>(each);
      c.tile_k = static_cast<int>(parts * each * kChunkBytes) / static_cast<int>(size_of(p.a_in));
      // More blocks than run at once have nothing left to hide.
      if (tiles_of(p, c) <= 4 * int64_t{target.sms}) found.push_back(c);
    }
  }
  return found;
}

std::string reject_direct(const CudaTileConfig& c, const CudaTileProblem& p, const CudaTarget& target) {
  constexpr int64_t kMostRegisters = 240, kMostGrid = 65535;
  int64_t registers = 44 + 4 * pieces_of(c) + sums_of(c);
  constexpr int64_t kHalves = 90;  // the compiler multiplies fp8 as halves
  if (p.a_in == DType::kF8E4M3 || p.a_in == DType::kF8E5M2) registers += kHalves;
  if (registers > std::min<int64_t>(kMostRegisters, target.registers_per_sm / c.threads())) {
    return "it needs more registers than a thread has";
  }
  if (ceil_div(p.m, c.tile_m) > kMostGrid || p.batch > kMostGrid) return "more tiles than a grid has";
  return {};
}

double predict_direct_us(const CudaTileProblem& p, const CudaTileConfig& c, const CudaTarget& target) {
  const auto& d = target.model.direct;
  const auto blocks = static_cast<double>(tiles_of(p, c));
  const double share = blocks / target.sms, of_sm = std::ceil(share);
  const double arriving = of_sm * (c.tile_m + c.tile_n) * static_cast<double>(line_bytes(p)) / d.arriving_per_us;
  return d.first_load_us + d.spread_us * std::min(share, 1.0) + (share > 1 ? d.second_us : 0) +
         p.bytes() / d.memory_per_us + arriving + d.piece_us * pieces_of(c) + (c.parts > 1 ? d.parts_us : 0) +
         d.sum_us * sums_of(c) * (c.parts - 1);
}

CudaLaunch direct_launch(const CudaTileProblem& p, const CudaTileConfig& c, int) {
  CudaLaunch launch;
  launch.symbol = "gemm";
  launch.grid = {static_cast<uint32_t>(ceil_div(p.n, c.tile_n)), static_cast<uint32_t>(ceil_div(p.m, c.tile_m)),
                 static_cast<uint32_t>(p.batch)};
  launch.block = static_cast<uint32_t>(c.threads());
  launch.shared_bytes = static_cast<uint32_t>(c.shared_bytes(p));
  return launch;
}

CudaInstance direct_instance(const CudaTileProblem& p, const CudaTileConfig& c) {
  CudaInstance i;
  i.header = "tile/kernel/cuda/gemm/direct.h", i.kernel = "tile::cuda::gemm_direct";
  i.types = {{"In", multiplied_type(p, c, true)}};
  i.sizes = {{"kBlocksM", blocks_m(c)}, {"kBlocksN", blocks_n(c)}, {"kWarpsM", c.warps_m},
             {"kWarpsN", c.warps_n},    {"kWarpsK", c.parts},      {"kChunks", c.stages}};
  // Whether no warp has less of k than another.
  i.flags = {{"kWholeK", line_bytes(p) == kChunkBytes * c.stages * c.parts}};
  return i;
}

}  // namespace

const CudaEngine kDirectEngine = {.name = "direct",
                                  .tensor_cores = true,
                                  .lines = true,
                                  .parts_are_warps = true,
                                  .configs = direct_configs,
                                  .reject = reject_direct,
                                  .predict_us = predict_direct_us,
                                  .shared_bytes = direct_shared_bytes,
                                  .launch = direct_launch,
                                  .instance = direct_instance};

}  // namespace heddle::schedule
