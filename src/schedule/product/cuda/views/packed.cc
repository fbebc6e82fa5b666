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
  constexpr double kFull = 16384;
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
  std::vector<PackedConfig> configs(const TileProblem& p, const GpuTarget& target) const override;
  std::string reject(const PackedConfig& c, const TileProblem& p, const GpuTarget& target) const override;
  bool gates(const PackedConfig&, const TileProblem&) const override { return true; }
  int shared_bytes(const TileProblem&, const PackedConfig& c) const override {
    return tile::gemm_packed_shared_bytes(c.tile_m, c.tile_n, c.warps_k, c.stages);
  }
  double predict_us(const TileProblem& p, const PackedConfig& c, const GpuTarget& target) const override;
  void describe(CudaInstance& i, const TileProblem& p, const PackedConfig& c) const override {
    i.headers = {"cuda/gemm/packed.h"}, i.kernel = "cuda::gemm_packed";
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

std::vector<PackedConfig> PackedFamily::configs(const TileProblem& p, const GpuTarget& target) const {
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

std::string PackedFamily::reject(const PackedConfig& c, const TileProblem& p, const GpuTarget& target) const {
  constexpr int kMostRegisters = 232;
  if (!p.a.lines) return "A is not a matrix along k in the type of the multiplication";
  if (registers_of(p, c) > std::min(kMostRegisters, target.registers_per_sm / c.threads())) {
    return "it needs more registers than a thread has";
  }
  return {};
}

// The numbers are fitted to 336 measured configurations of 11 problems, with an error of 6% in the mean
// (docs/notes/h200/packed-weights.md).
double PackedFamily::predict_us(const TileProblem& p, const PackedConfig& c, const GpuTarget& target) const {
  constexpr double kSchedulers = 4;
  const auto& chip = target.model.chip;
  const auto& m = target.model.mma;
  const auto& packed = target.model.packed;
  const double us_per_cycle = 1 / (chip.clock_ghz * 1e3);
  const auto blocks = static_cast<double>(cut(c).tiles(p) * c.splits);
  const double of_each_sm = blocks / target.sms;
  const int resident = blocks_of_sm(c.threads(), shared_bytes(p, c), registers_of(p, c), target);
  const double together = std::min<double>(resident, of_each_sm), rows = row_blocks(c), columns = column_blocks(c);
  const int warps = c.warps_n * c.warps_k;
  const double in_flight = together * warps * c.stages * rows * 128.0 * p.b.bits;
  const double memory = p.bytes() / (m.memory_per_us * share_of_bandwidth(in_flight));
  // Each tile reads its rows of A from the L2.
  const double lines = std::min<double>(c.tile_m, static_cast<double>(p.m));
  const double l2 =
      blocks / c.splits * lines * static_cast<double>(p.k) * 2 / (m.l2_per_cycle * target.sms) * us_per_cycle;

  // A fragment costs the cycles to issue its instructions and those of its products. Few warps wait for themselves.
  constexpr double kBusyWarps = 12, kWait = 0.4;
  const double widening = p.a_in == DType::kF16 ? 39 : p.b.bits == 8 ? 90 : 51;
  const double issue = (widening + packed.fragment_cycles / rows + packed.rows_cycles * columns) / kSchedulers;
  const double products = columns * tile::kFragmentDepth * tile::kFragmentRows * 8 / chip.mma_per_cycle;
  const double fragments = static_cast<double>(ceil_div(p.n, c.tile_n) * c.tile_n / tile::kFragmentRows) *
                           static_cast<double>(ceil_div(p.m, c.tile_m) * ceil_div(p.k, tile::kFragmentDepth));
  const double waves = std::min(std::ceil(of_each_sm) / of_each_sm, 2.0);
  const double alone =
      std::pow(std::max(1.0, kBusyWarps / (std::min<double>(resident, std::max(1.0, of_each_sm)) * warps)), kWait);
  const double compute = fragments / target.sms * overlapped_us({issue, products}) * us_per_cycle * waves * alone;

  // A warp waits for each batch of fragments in flight in turn, and at each step for the rows of A.
  const auto steps = static_cast<double>(ceil_div(ceil_div(p.k, tile::kFragmentDepth), c.warps_k * c.splits));
  const double turns = std::ceil(of_each_sm / resident);
  const double waiting = turns * steps * (packed.step_cycles + packed.batch_cycles / c.stages) * us_per_cycle;
  const double sums = turns * packed.sum_cycles * c.warps_k * c.tile_m * c.tile_n * us_per_cycle;
  return packed.first_load_us + packed.code_us * c.stages * rows + overlapped_us({memory, l2, compute, waiting}) + sums;
}

}  // namespace

const ViewFamily& packed_family() {
  static const PackedFamily family;
  return family;
}

}  // namespace heddle::schedule
