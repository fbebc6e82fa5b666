// The kernel for at most eight rows or columns of D (tile/kernel/cuda/gemm/skinny.h): which configurations a problem
// may take, and what they are expected to cost.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/product/cuda/tile.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {
namespace {

constexpr int kMostFew = 8;  // as many columns as an epilogue takes at once

const OperandTraits& wide_of(const TileProblem& p, const SkinnyConfig& c) {
  return c.swapped ? p.a : p.b;
}

// Elements of a load of the wide operand.
int width_of(const OperandTraits& wide) {
  return wide.along_k ? wide.width : std::min(wide.width, tile::kSkinnyRows);
}

// Bytes of a load of the wide operand. Packed weights are loaded by words.
int load_bytes(const OperandTraits& wide) {
  return wide.bits != 0 ? 4 : width_of(wide) * static_cast<int>(size_of(wide.element));
}

int shared_bytes_of(const TileProblem& p, const SkinnyConfig& c) {
  return wide_of(p, c).along_k ? 0 : c.warps * c.tile_n * p.sum_bytes();
}

int registers_of(const TileProblem& p, const SkinnyConfig& c) {
  constexpr double kRest = 54;
  return static_cast<int>(kRest + static_cast<double>(p.sum_bytes()) / 4 * 8 * (c.few + 1));
}

double few_us(const TileProblem& p, const SkinnyConfig& c, const GpuTarget& target) {
  const OperandTraits& wide = c.swapped ? p.a : p.b;
  const int64_t count = c.swapped ? p.m : p.n;
  const auto units = static_cast<double>(ceil_div(count, c.tile_n) * p.batch * c.splits);
  // All of the bandwidth needs some 32 KiB in flight on every SM: two or four tiles of k of each warp.
  // Warps, or lanes, without a row have nothing to load.
  const int64_t rows = std::min<int64_t>(c.rows, count), busy = std::min<int64_t>(c.warps, ceil_div(count, rows));
  const double warps = std::min(units * static_cast<double>(wide.along_k ? busy : c.warps) / target.sms,
                                8.0 * blocks_of_sm(c.threads(), shared_bytes_of(p, c), registers_of(p, c), target));
  // A short k, or few rows, leave lanes of a warp without a load.
  const int64_t lanes = std::min<int64_t>(32, ceil_div(wide.along_k ? p.k : count, width_of(wide)));
  const double pieces = wide.along_k ? 2.0 * static_cast<double>(rows) : 4;
  const double in_flight = warps * static_cast<double>(lanes) * load_bytes(wide) * pieces;
  const double share = std::min(1.0, in_flight / 32768) * (load_bytes(wide) >= 8 || wide.bits != 0 ? 0.92 : 0.6);
  const double memory = p.bytes() / (target.model.mma.memory_per_us * std::max(share, 0.02));
  // Each element is converted once and multiplied by all of the few. Along k, a warp issues the instructions of whole
  // tiles of k, of which lanes beyond the end of k make no use.
  const int64_t issued_k = wide.along_k ? ceil_div(p.k, c.tile_k) * c.tile_k : p.k;
  const double elements = static_cast<double>(count) * issued_k * p.batch;
  const double cycles = target.sms * target.model.chip.clock_ghz * 1e3;
  const double widening = wide.bits != 0 ? 3 : 0;  // instructions for each of the integers
  const double arithmetic = elements * (c.few + 1.5 + widening) / (multiply_rate(p, false, target) * cycles);
  // Addresses are computed anew for every piece: those of images divide.
  const auto address = [](const OperandTraits& o) { return o.image ? 150.0 : 8.0; };
  const OperandTraits& few = c.swapped ? p.b : p.a;
  const double of_few = wide.along_k ? address(few) * c.few / c.rows : address(few) * c.few;
  const double instructions = elements / width_of(wide) * (address(wide) + of_few) / (128 * cycles);
  return std::max(memory, arithmetic + instructions);
}

class SkinnyFamily : public ViewFamilyOf<SkinnyConfig> {
  bool reads_packed_weights() const override { return true; }
  bool tensor_cores() const override { return false; }
  TileCut cut(const SkinnyConfig& c) const override { return {c.few, c.tile_n, c.tile_k, c.splits, c.swapped}; }
  int64_t joined(const TileProblem& p, const SkinnyConfig& c) const override {
    return wide_of(p, c).along_k ? 32 : c.warps;
  }
  std::vector<SkinnyConfig> configs(const TileProblem& p, const GpuTarget& target) const override {
    std::vector<SkinnyConfig> found;
    for (const bool swapped : {false, true}) {
      if (p.b.bits != 0 && (swapped || p.a_in != DType::kF32)) continue;
      SkinnyConfig c;
      c.swapped = swapped;
      while (c.few < view_of(p, swapped).m && c.few < kMostFew) c.few *= 2;
      const OperandTraits& wide = wide_of(p, c);
      for (const int rows : {1, 2, 4}) {
        c.rows = rows;
        c.tile_n = wide.along_k ? c.warps * rows : 32 * width_of(wide);
        c.tile_k = wide.along_k ? 32 * width_of(wide) : c.warps * 8;
        add_splits(found, p, c, wide.along_k ? 2 : 1, target);
        if (!wide.along_k) break;
      }
    }
    return found;
  }
  std::string reject(const SkinnyConfig& c, const TileProblem& p, const GpuTarget&) const override {
    if (!p.a.view || (!p.b.view && p.b.bits == 0)) return "a computed operand has no memory to stream";
    const int64_t few = view_of(p, c.swapped).m;
    if (few > kMostFew) return fmt::format("{} {} are more than {}", few, c.swapped ? "columns" : "rows", kMostFew);
    return {};
  }
  bool gates(const SkinnyConfig& c, const TileProblem& p) const override {
    return !c.swapped && (!p.b.along_k || c.rows > 1);
  }
  int shared_bytes(const TileProblem& p, const SkinnyConfig& c) const override { return shared_bytes_of(p, c); }
  double predict_us(const TileProblem& p, const SkinnyConfig& c, const GpuTarget& target) const override {
    return target.model.mma.skinny_load_us + few_us(p, c, target);
  }
  void describe(CudaInstance& i, const TileProblem& p, const SkinnyConfig& c) const override {
    i.headers = {"cuda/gemm/skinny.h"}, i.kernel = "cuda::gemm_skinny";
    i.sizes = {{{"kFew", c.few}, {"kWarps", c.warps}, {"kRows", c.rows}}};
    i.flags = {{"kSwapped", c.swapped}};
    constexpr double kLarge = 8 << 20;
    i.b_passes_once = wide_of(p, c).bytes > kLarge;
  }
};

}  // namespace

const ViewFamily& skinny_family() {
  static const SkinnyFamily family;
  return family;
}

}  // namespace heddle::schedule
