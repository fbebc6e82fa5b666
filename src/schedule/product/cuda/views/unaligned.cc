// Which configurations of the kernel that reads lines as they lie a problem may take, and what they are expected to
// cost.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/divide.h"
#include "schedule/product/cuda/long_sums.h"
#include "schedule/product/cuda/reduce.h"
#include "schedule/product/cuda/tile.h"
#include "schedule/product/cuda/wgmma/wgmma.h"
#include "target/argument_block.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {
namespace {

constexpr int kMostThreadSums = 128;     // of a thread
constexpr int kMostSumsInTwoParts = 32;  // of f32 in two parts: with more every instance spills
constexpr int64_t kMostSide = 128;       // of D's small side
constexpr int kMostStages = 8;

struct WarpShape {
  int m, warps_m, warps_k;
};
constexpr WarpShape kWarpShapes[] = {{16, 1, 1},  {16, 1, 2},  {16, 1, 4},  {16, 1, 8},  {32, 1, 4},
                                     {32, 2, 1},  {32, 2, 2},  {32, 2, 4},  {64, 2, 2},  {64, 4, 1},
                                     {64, 4, 2},  {64, 2, 4},  {64, 1, 8},  {64, 2, 8},  {128, 4, 1},
                                     {128, 4, 2}, {128, 8, 1}, {128, 2, 4}, {128, 4, 4}, {256, 8, 1}};

int shared_bytes_of(const UnalignedConfig& c) {
  return tile::gemm_unaligned_shared_bytes(c.tile_m, c.tile_n, c.warps_k, c.stages, c.cluster_k, c.swapped);
}

TileCut cut_of(const UnalignedConfig& c) {
  return {c.tile_m, c.tile_n, c.tile_k, c.splits, c.swapped};
}
int64_t steps_of(const TileProblem& p, const UnalignedConfig& c) {
  return ceil_div(p.k, c.tile_k);
}
int sums_of(const UnalignedConfig& c) {
  return c.tile_m / c.warps_m * c.tile_n / 32;
}

// Adds what differs in the parts of k.
void add_parts(std::vector<UnalignedConfig>& found, const TileProblem& p, UnalignedConfig c, const GpuTarget& target) {
  const int64_t tiles = cut_of(c).tiles(p), steps = steps_of(p, c);
  for (const int parts : {1, 2, 3, 4, 6, 8}) {
    if (steps < parts || (parts > 1 && tiles * parts > 4 * int64_t{target.sms})) continue;
    c.cluster_k = parts;
    c.splits = 1;
    // As many stages as one block can have, or as leave room for a second one.
    const auto wanted = static_cast<int>(std::clamp<int64_t>(ceil_div(steps, parts) + 1, 2, kMostStages));
    int before = 0;
    for (const int64_t limit : {target.shared_bytes_per_block, int64_t{tile::kGemmHalfOfShared}}) {
      c.stages = wanted;
      while (c.stages > 2 && shared_bytes_of(c) > limit) --c.stages;
      if (c.stages == before || shared_bytes_of(c) > limit) continue;
      found.push_back(c);
      before = c.stages;
    }
    if (before == 0 || parts < 4) continue;
    for (const int64_t blocks : {target.sms, 2 * target.sms}) {
      const int64_t splits = std::min<int64_t>(blocks * 9 / 10 / (tiles * parts), steps / (3 * parts));
      if (splits < 2 || splits == c.splits) continue;
      c.splits = static_cast<int>(splits);
      found.push_back(c);
    }
  }
}

// Columns of D that the epilogue gets at once.
int neighbours_of(const TileProblem& p, const UnalignedConfig& c) {
  return p.scattered && c.splits == 1 ? 1 : 4;
}

// Blocks of a SM that registers and shared memory allow.
int resident_of(const UnalignedConfig& c) {
  constexpr int kSkinnySums = 48;
  return c.threads() <= 128 || (c.threads() <= 256 && sums_of(c) <= kSkinnySums) ? 2 : 1;
}

std::vector<UnalignedConfig> unaligned_configs(const TileProblem& p, const GpuTarget& target) {
  std::vector<UnalignedConfig> found;
  if (!target.has_clusters() || p.k == 0 || p.a_in != p.b_in || !p.a.lines || !p.b.lines) return found;
  // Where TMA reads both operands, only what is so small that its maps cost more.
  constexpr double kSmall = 2 << 20;
  const bool aligned = std::min(line_alignment(p.a), line_alignment(p.b)) >= 16;
  if (aligned && !p.splits_f32() && p.bytes() > kSmall) return found;
  for (const bool swapped : {false, true}) {
    const TileView v = view_of(p, swapped);
    const int64_t side = round_up(v.n, 8);
    if (side > kMostSide) continue;
    for (const WarpShape& shape : kWarpShapes) {
      if (shape.m > 16 && shape.m >= 2 * v.m) continue;
      std::vector<int64_t> widths = {side};  // narrower tiles: more blocks
      for (const int64_t n : {32, 16}) {
        if (n < side && (n == 16 || side % n == 0)) widths.push_back(n);
      }
      for (const int64_t n : widths) {
        UnalignedConfig c;
        c.tile_m = shape.m, c.tile_n = static_cast<int>(n);
        c.warps_m = shape.warps_m, c.warps_k = shape.warps_k;
        c.tile_k = shape.warps_k * tile::kGemmRowBytes / static_cast<int>(size_of(p.a_in));
        c.swapped = swapped;
        const bool idle = shape.warps_k > 1 && p.k <= c.tile_k / 2;  // half of the warps along k
        // More tiles than run at once are for larger ones.
        if (idle || (n < side && cut_of(c).tiles(p) > 4 * int64_t{target.sms})) continue;
        if (shape.m < 64 && cut_of(c).tiles(p) > 16 * int64_t{target.sms}) continue;
        if (sums_of(c) <= (p.splits_f32() ? kMostSumsInTwoParts : kMostThreadSums)) add_parts(found, p, c, target);
      }
    }
  }
  return found;
}

// What a thread needs, by count: sums, fragments, where its pieces come from.
int64_t registers_of(const UnalignedConfig& c, const TileProblem& p) {
  const TileView v = view_of(p, c.swapped);
  const int64_t blocks_m = c.tile_m / c.warps_m / 16, group = blocks_m >= 4 ? 1 : blocks_m == 2 ? 2 : 4;
  constexpr int64_t kRest = 30, kHalves = 90;  // the compiler multiplies fp8 as halves
  int64_t count = kRest + sums_of(c) + 16 * blocks_m + 8 * std::min<int64_t>(group, c.tile_n / 8);
  if (p.a_in == DType::kF8E4M3 || p.a_in == DType::kF8E5M2) count += kHalves;
  if (p.splits_f32()) count += 2 * sums_of(c) - 8;  // fitted to what spills: low parts, sums of one instruction
  for (const auto& [o, rows] : {std::pair{v.a, c.tile_m}, {v.b, c.tile_n}}) {
    count += ceil_div(int64_t{rows} * c.warps_k * 8, c.threads());
    if (line_alignment(*o) < 16) count += ceil_div(rows, c.threads());
  }
  return count;
}

std::string reject_unaligned(const UnalignedConfig& c, const TileProblem& p, const GpuTarget& target) {
  constexpr int64_t kMostRegisters = 255;
  constexpr int64_t kMostGrid = 65535;
  const TileView v = view_of(p, c.swapped);
  if (registers_of(c, p) >
      std::min<int64_t>(kMostRegisters, target.registers_per_sm / (c.threads() * resident_of(c)))) {
    return "it needs more registers than a thread has";
  }
  if (c.cluster_k > target.sms) return "more blocks than the device has SMs";
  if (ceil_div(v.n, c.tile_n) > kMostGrid || p.batch * c.splits > kMostGrid) return "more tiles than a grid has";
  return {};
}

double predict_unaligned_us(const TileProblem& p, const UnalignedConfig& c, const GpuTarget& target) {
  const auto& u = target.model.unaligned;
  const double cycles_per_us = u.clock_ghz * 1e3;
  constexpr double kIssued = 0.46;  // fitted, as the other numbers without a name
  const TileView v = view_of(p, c.swapped);
  const auto blocks = static_cast<double>(cut_of(c).tiles(p) * c.cluster_k * c.splits);
  const auto each = static_cast<double>(ceil_div(steps_of(p, c), int64_t{c.cluster_k} * c.splits));
  const int at_once = shared_bytes_of(c) <= tile::kGemmHalfOfShared ? resident_of(c) : 1;
  const double of_sm = std::ceil(blocks / (target.sms * kClusterShare[c.cluster_k])),
               rounds = std::ceil(of_sm / at_once);
  const double busy = std::min<double>(of_sm, at_once);
  const auto bytes_of = [&](const OperandTraits& o, int rows) {
    const double line = c.warps_k * tile::kGemmRowBytes;
    return (line + (line_alignment(o) < 16 ? 24 : 0)) * rows;
  };
  const double step_bytes = bytes_of(*v.a, c.tile_m) + bytes_of(*v.b, c.tile_n);
  // What cp.async brings into one SM, alone or while all others do the same: less where lines come in
  // pieces of 128 or 256 bytes.
  const double idle = 1 - std::min(blocks / target.sms, 1.0), pieces = c.warps_k == 1 ? 1.2 : c.warps_k == 2 ? 1.1 : 1;
  const double arriving = busy * step_bytes * pieces / (u.arriving_per_us + u.alone_per_us * idle * idle);
  // Instructions of a warp for 128 bytes of k: fragments, products; of a block for its copies.
  const auto reads = [](const OperandTraits& o) {
    return line_alignment(o) >= 16 ? 2.0 : line_alignment(o) >= 4 ? 8 : 17;
  };
  const double blocks_m = c.tile_m / c.warps_m / 16.0, blocks_n = c.tile_n / 8.0;
  const bool split = p.splits_f32();  // in two parts: three products and a sum; fragments are taken apart
  const double of_warp = 2 * blocks_m * (reads(*v.a) + (split ? 32 : 0)) +
                         blocks_n * (reads(*v.b) + (split ? 42 : 0) + (split ? 28 : 4) * blocks_m) + 30;
  const double issue = busy * of_warp * c.warps_m * c.warps_k / 4 / kIssued;
  const double tensor =
      busy * c.warps_k * static_cast<double>(c.tile_m) * c.tile_n * (split ? 192 : 64) / u.mma_per_cycle;
  const double compute = std::max(issue, tensor) / cycles_per_us;
  const double both = std::max(arriving, compute) + 0.9 * std::min(arriving, compute);
  const double waiting = std::max(0.0, rounds * each / (c.stages - 1) - 1) * u.latency_us;
  const double memory = p.bytes() / u.memory_per_us, l2 = blocks * each * step_bytes / u.l2_per_us;
  const double area = static_cast<double>(c.tile_m) * c.tile_n;
  double us = u.first_load_us + std::max({rounds * each * both, waiting, memory, l2});
  us += rounds * area * c.warps_k / c.cluster_k / c.threads() * 58 / cycles_per_us;
  if (split) us += of_warp * u.fetch_us;
  if (neighbours_of(p, c) == 1) {
    us += u.scattered_us * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.batch) *
          p.out_bytes;
  }
  if (c.cluster_k > 1) us += u.cluster_us + area * 4 / 12 / cycles_per_us;
  return us;
}

CudaLaunch unaligned_launch(const TileProblem& p, const UnalignedConfig& c, int workspace) {
  const TileView v = view_of(p, c.swapped);
  const tile::ClusterSplitKArgs args =
      cluster_splitk_args({p.m, p.n, p.batch}, v.m, v.n, steps_of(p, c), c.cluster_k, c.splits);
  CudaLaunch launch;
  launch.grid = {static_cast<uint32_t>(ceil_div(v.m, c.tile_m) * c.cluster_k),
                 static_cast<uint32_t>(ceil_div(v.n, c.tile_n)), static_cast<uint32_t>(p.batch * c.splits)};
  launch.cluster = static_cast<uint32_t>(c.cluster_k);
  launch.arguments = {argument_bytes(args)};
  if (c.splits > 1) launch.pointers = {{0, static_cast<int>(offsetof(tile::ClusterSplitKArgs, partial)), workspace}};
  return launch;
}

// Whether the kernels of TMA would load weights while the kernel in front still runs, which this one does not.
bool waits_for_weights(const ProductTask& task, const GpuTarget& target) {
  const auto is_weight = [&](const OperandView& o) {
    return o.form == OperandView::Form::kMatrix && task.operands[o.operand].constant;
  };
  std::string why;
  return (is_weight(task.product.a) || is_weight(task.product.b)) && target.has_wgmma() &&
         wgmma_problem(task, &why).has_value();
}

class UnalignedFamily : public ViewFamilyOf<UnalignedConfig> {
 public:
  LinesOf lines() const override { return LinesOf::kAll; }
  std::vector<CudaCandidate> candidates(const ProductTask& task, const GpuTarget& target) const override {
    std::vector<CudaCandidate> found = ViewFamily::candidates(task, target);
    if (!waits_for_weights(task, target)) return found;
    for (CudaCandidate& c : found) {
      if (c.rejected.empty()) c.config.predicted_us += target.model.mma.late_weights_us;
    }
    return found;
  }

 private:
  TileCut cut(const UnalignedConfig& c) const override { return cut_of(c); }
  int64_t joined(const TileProblem& p, const UnalignedConfig& c) const override {
    return c.warps_k * c.cluster_k * joined_by_tensor_cores(p.a_in);
  }
  std::vector<UnalignedConfig> configs(const TileProblem& p, const GpuTarget& target) const override {
    return unaligned_configs(p, target);
  }
  std::string reject(const UnalignedConfig& c, const TileProblem& p, const GpuTarget& target) const override {
    return reject_unaligned(c, p, target);
  }
  int shared_bytes(const TileProblem&, const UnalignedConfig& c) const override { return shared_bytes_of(c); }
  double predict_us(const TileProblem& p, const UnalignedConfig& c, const GpuTarget& target) const override {
    return predict_unaligned_us(p, c, target);
  }
  CudaLaunch launch(const TileProblem& p, const UnalignedConfig& c, int workspace) const override {
    return unaligned_launch(p, c, workspace);
  }
  void describe(CudaInstance& i, const TileProblem& p, const UnalignedConfig& c) const override {
    const TileView v = view_of(p, c.swapped);
    i.headers = {"cuda/gemm/unaligned.h"}, i.kernel = "cuda::gemm_unaligned";
    i.arguments[0].type = "ClusterSplitKArgs";
    i.sizes = {{{"kTileM", c.tile_m},
                {"kTileN", c.tile_n},
                {"kWarpsM", c.warps_m},
                {"kWarpsK", c.warps_k},
                {"kStages", c.stages},
                {"kClusterK", c.cluster_k},
                {"kAlignA", line_alignment(*v.a)},
                {"kAlignB", line_alignment(*v.b)},
                {"kNeighbours", neighbours_of(p, c)}}};
    i.flags = {{"kSwapped", c.swapped}};
    i.resident = resident_of(c), i.cluster = c.cluster_k;
  }
};

}  // namespace

const ViewFamily& unaligned_family() {
  static const UnalignedFamily family;
  return family;
}

}  // namespace heddle::schedule
