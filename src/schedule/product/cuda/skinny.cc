// The kernel for at most eight rows or columns of D (tile/kernel/cuda/gemm/skinny.h): which configurations a problem
// may take, and what they are expected to cost.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/product/cuda/engine.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {
namespace {

constexpr int kMostFew = 8;  // as many columns as an epilogue takes at once

const CudaOperand& wide_of(const CudaTileProblem& p, const CudaTileConfig& c) {
  return c.swapped ? p.a : p.b;
}

int registers_of(const CudaTileProblem& p, const CudaTileConfig& c) {
  constexpr double kRest = 54;
  return static_cast<int>(kRest + static_cast<double>(p.sum_bytes()) / 4 * 8 * (c.tile_m + 1));
}

double few_us(const CudaTileProblem& p, const CudaTileConfig& c, const CudaTarget& target) {
  const CudaOperand& wide = c.swapped ? p.a : p.b;
  const int64_t count = c.swapped ? p.m : p.n;
  const auto units = static_cast<double>(ceil_div(count, c.tile_n) * p.batch * c.splits);
  // All of the bandwidth needs some 32 KiB in flight on every SM: two or four tiles of k of each warp.
  const double warps = std::min(units * c.warps_m / target.sms, 8.0 * blocks_of_sm(p, c, registers_of(p, c), target));
  const double pieces = wide.along_k ? 2 * c.rows : 4;
  const double in_flight = warps * 32 * wide.width * static_cast<double>(size_of(wide.element)) * pieces;
  const double share = std::min(1.0, in_flight / 32768) * (wide.width * size_of(wide.element) >= 8 ? 0.92 : 0.6);
  const double memory = p.bytes() / (target.model.mma.memory_per_us * std::max(share, 0.02));
  // Each element is converted once and multiplied by all of the few.
  const double elements = static_cast<double>(count) * p.k * p.batch;
  const double cycles = target.sms * target.model.chip.clock_ghz * 1e3;
  const double arithmetic = elements * (c.tile_m + 1.5) / (multiply_rate(p, false, target) * cycles);
  // Addresses are computed anew for every piece: those of images divide.
  const auto address = [](const CudaOperand& o) { return o.image ? 150.0 : 8.0; };
  const CudaOperand& few = c.swapped ? p.b : p.a;
  const double of_few = wide.along_k ? address(few) * c.tile_m / c.rows : address(few) * c.tile_m;
  const double instructions = elements / wide.width * (address(wide) + of_few) / (128 * cycles);
  return std::max(memory, arithmetic + instructions);
}

double predict_skinny_us(const CudaTileProblem& p, const CudaTileConfig& c, const CudaTarget& target) {
  return target.model.mma.skinny_load_us + few_us(p, c, target);
}

std::string reject_skinny(const CudaTileConfig& c, const CudaTileProblem& p, const CudaTarget&) {
  if (!p.a.view || !p.b.view) return "a computed operand has no memory to stream";
  const int64_t few = view_of(p, c.swapped).m;
  if (few > kMostFew) return fmt::format("{} {} are more than {}", few, c.swapped ? "columns" : "rows", kMostFew);
  return {};
}

std::vector<CudaTileConfig> few_configs(const CudaTileProblem& p, const CudaTarget& target) {
  std::vector<CudaTileConfig> found;
  for (const bool swapped : {false, true}) {
    CudaTileConfig c;
    c.engine = CudaTileConfig::Engine::kFew;
    c.swapped = swapped;
    c.tile_m = 1;
    while (c.tile_m < view_of(p, swapped).m && c.tile_m < kMostFew) c.tile_m *= 2;
    c.warps_m = 8, c.warps_n = 1;
    const CudaOperand& wide = wide_of(p, c);
    for (const int rows : {1, 2, 4}) {
      c.rows = rows;
      c.tile_n = wide.along_k ? c.warps_m * rows : 32 * wide.width;
      c.tile_k = wide.along_k ? 32 * wide.width : c.warps_m * 8;
      add_splits(found, p, c, wide.along_k ? 2 : 1, target);
      if (!wide.along_k) break;
    }
  }
  return found;
}

int few_shared_bytes(const CudaTileProblem& p, const CudaTileConfig& c) {
  return wide_of(p, c).along_k ? 0 : c.warps_m * c.tile_n * p.sum_bytes();
}

CudaInstance few_instance(const CudaTileProblem& p, const CudaTileConfig& c) {
  CudaInstance i;
  i.header = "tile/kernel/cuda/gemm/skinny.h", i.kernel = "tile::cuda::gemm_skinny", i.arguments = "GemmArgs";
  i.types = {{"In", multiplied_type(p, c, true)}};
  i.sizes = {{"kFew", c.tile_m}, {"kWarps", c.warps_m}, {"kRows", c.rows}};
  i.flags = {{"kSwapped", c.swapped}};
  constexpr double kLarge = 8 << 20;
  i.stream = wide_of(p, c).bytes > kLarge;
  return i;
}

}  // namespace

const CudaEngine kSkinnyEngine = {.name = "few",
                                  .configs = few_configs,
                                  .reject = reject_skinny,
                                  .predict_us = predict_skinny_us,
                                  .shared_bytes = few_shared_bytes,
                                  .launch = tiles_launch,
                                  .instance = few_instance};

}  // namespace heddle::schedule
