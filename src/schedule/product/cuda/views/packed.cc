// The family for weights of few bits (tile/kernel/cuda/gemm/packed.h): its configurations for a problem, and their
// predicted times.
#include <algorithm>
#include <cmath>

#include "schedule/product/cuda/long_sums.h"
#include "schedule/product/cuda/tile.h"
#include "tile/core/cuda_gemm.h"
#include "tile/core/pack.h"

namespace heddle::schedule {
namespace {

constexpr int kMostColumnBlocks = 8;  // of 8 rows of D each

int row_blocks(const PackedConfig& c) {
  return c.tile_n / (tile::kFragmentRows * c.warps_n);
}
int column_blocks(const PackedConfig& c) {
  return c.tile_m / 8;
}

// Per thread: sums, fragments in flight with their scales and zero points, operands of an instruction, addresses.
int registers_of(const TileProblem& p, const PackedConfig& c) {
  constexpr int kRest = 56;
  return kRest + 4 * row_blocks(c) * column_blocks(c) + c.stages * row_blocks(c) * (p.b.bits + 2) +
         4 * column_blocks(c);
}

struct Warps {
  int n, k;
};
constexpr Warps kWarps[] = {{1, 4}, {1, 8}, {1, 16}, {2, 2}, {2, 4}, {2, 8}, {4, 1}, {4, 2}, {4, 4}};

// The share of the memory bandwidth that is reached with `in_flight` bytes in flight on each SM.
double share_of_bandwidth(double in_flight) {
  constexpr double kFull = 32768;
  return std::min(1.0, in_flight / kFull);
}

class PackedFamily : public ViewFamilyOf<PackedConfig> {
 public:
  LinesOf lines() const override { return LinesOf::kAll; }
  bool reads_packed_weights() const override { return true; }

 private:
  TileCut cut(const PackedConfig& c) const override {
    return {c.tile_m, c.tile_n, tile::kFragmentDepth * c.warps_k, c.splits, false};
  }
  int64_t joined(const TileProblem& p, const PackedConfig& c) const override {
    return c.warps_k * joined_by_tensor_cores(p.a_in);
  }
  std::vector<PackedConfig> configs(const TileProblem& p, const CudaTarget& target) const override;
  std::string reject(const PackedConfig& c, const TileProblem& p, const CudaTarget& target) const override;
  bool gates(const PackedConfig&, const TileProblem&) const override { return true; }
  int shared_bytes(const TileProblem&, const PackedConfig& c) const override {
    return tile::gemm_packed_shared_bytes(c.tile_m, c.tile_n, c.warps_k, c.stages);
  }
  double predict_us(const TileProblem& p, const PackedConfig& c, const CudaTarget& target) const override;
  void describe(CudaInstance& i, const TileProblem& p, const PackedConfig& c) const override {
    i.headers = {"gemm/packed.h"}, i.kernel = "cuda::gemm_packed";
    i.sizes = {{{"kRowBlocks", row_blocks(c)},
                {"kColumnBlocks", column_blocks(c)},
                {"kWarpsN", c.warps_n},
                {"kWarpsK", c.warps_k},
                {"kStages", c.stages},
                {"kWidth", line_alignment(p.a) >= kCopyBytes ? kCopyBytes / 2 : 1}}};
    i.waits = true;
    constexpr double kLarge = 8 << 20;
    i.b_passes_once = p.b.bytes > kLarge;
  }
};

std::vector<PackedConfig> PackedFamily::configs(const TileProblem& p, const CudaTarget& target) const {
  std::vector<PackedConfig> found;
  if (p.b.bits == 0 || p.k == 0 || p.a_in == DType::kF32) return found;
  int columns = 1;
  while (columns < kMostColumnBlocks && 8 * columns < p.m) columns *= 2;
  const int64_t depths = ceil_div(p.k, tile::kFragmentDepth);
  for (const int rows : {1, 2, 4}) {
    if (rows * columns > 16) continue;
    for (const Warps& warps : kWarps) {
      // A warp that shares A with no other would have to copy many rows alone.
      if ((warps.n == 1 && columns > 2) || (warps.k > 1 && warps.k >= 2 * depths)) continue;
      for (const int stages : {2, 3, 4, 6}) {
        PackedConfig c;
        c.tile_m = 8 * columns, c.tile_n = tile::kFragmentRows * rows * warps.n;
        c.warps_n = warps.n, c.warps_k = warps.k, c.stages = stages;
        add_splits(found, p, c, 1, target);
      }
    }
  }
  return found;
}

std::string PackedFamily::reject(const PackedConfig& c, const TileProblem& p, const CudaTarget& target) const {
  constexpr int kMostRegisters = 232;
  if (!p.a.lines) return "A is not a matrix along k in the type of the multiplication";
  if (registers_of(p, c) > std::min(kMostRegisters, target.registers_per_sm / c.threads())) {
    return "it needs more registers than a thread has";
  }
  return {};
}

double PackedFamily::predict_us(const TileProblem& p, const PackedConfig& c, const CudaTarget& target) const {
  const auto& chip = target.model.chip;
  const auto& m = target.model.mma;
  const double cycles = target.sms * chip.clock_ghz * 1e3;  // of all SMs per microsecond
  const auto blocks = static_cast<double>(cut(c).tiles(p) * c.splits);
  const int resident = blocks_of_sm(c.threads(), shared_bytes(p, c), registers_of(p, c), target);
  const double of_sm = std::min<double>(resident, blocks / target.sms);
  const double fragment = 128.0 * p.b.bits;
  const double in_flight = of_sm * c.warps_n * c.warps_k * c.stages * row_blocks(c) * fragment;
  const double memory = p.bytes() / (m.memory_per_us * share_of_bandwidth(in_flight));
  // Each tile reads its rows of A from the L2.
  const double rows = std::min<double>(c.tile_m, static_cast<double>(p.m));
  const double l2 = blocks / c.splits * rows * static_cast<double>(p.k) * 2 / (m.l2_per_cycle * cycles);
  // A fragment costs the cycles to issue its instructions, four per cycle of an SM, and the cycles of its products.
  const double fragments = static_cast<double>(ceil_div(p.n, c.tile_n) * c.tile_n / tile::kFragmentRows) *
                           static_cast<double>(ceil_div(p.m, c.tile_m) * ceil_div(p.k, tile::kFragmentDepth));
  const double widening = (p.a_in == DType::kF16 ? 13.0 : p.b.bits == 8 ? 30.0 : 17.0) * 4;
  const double issue = (widening + 30.0 / row_blocks(c) + 6.0 * column_blocks(c)) / 4;
  const double products = 4.0 * column_blocks(c) * 16 * 8 * 16 / chip.mma_per_cycle;
  const double waves = std::ceil(blocks / target.sms) / (blocks / target.sms);
  const double compute = fragments * overlapped_us({issue, products}) / cycles * std::min(waves, 2.0);
  // A warp waits for each batch of fragments in flight in turn.
  const auto steps = static_cast<double>(ceil_div(ceil_div(p.k, tile::kFragmentDepth), c.warps_k * c.splits));
  const double turns = std::ceil(blocks / (static_cast<double>(target.sms) * resident));
  const double waiting = turns * steps / c.stages * m.latency_cycles / (chip.clock_ghz * 1e3);
  return m.skinny_load_us + overlapped_us({memory, l2, compute, waiting});
}

}  // namespace

const ViewFamily& packed_family() {
  static const PackedFamily family;
  return family;
}

}  // namespace heddle::schedule
