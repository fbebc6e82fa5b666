// Which configurations of the kernel without shared memory a product may take, and what they are expected to cost.
#include <algorithm>
#include <cmath>

#include "schedule/product/cuda/long_sums.h"
#include "schedule/product/cuda/tile.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kChunkBytes = 64;  // of k, that a warp loads at a time
constexpr int kMostWarps = 16, kMostChunks = 6;

int64_t line_bytes(const TileProblem& p) {
  return p.k * static_cast<int64_t>(size_of(p.a_in));
}
// Blocks of 16 rows and 8 columns that a warp has.
int blocks_m(const RegisterDirectConfig& c) {
  return c.tile_m / (16 * c.warps_m);
}
int blocks_n(const RegisterDirectConfig& c) {
  return c.tile_n / (8 * c.warps_n);
}

// Pieces of 16 bytes that a lane loads.
int pieces_of(const RegisterDirectConfig& c) {
  return (2 * blocks_m(c) + blocks_n(c)) * c.chunks;
}
int sums_of(const RegisterDirectConfig& c) {
  return 4 * blocks_m(c) * blocks_n(c);
}

struct Shape {
  int blocks_m, blocks_n, warps_m, warps_n;
};
constexpr Shape kShapes[] = {{1, 1, 1, 1}, {1, 2, 1, 1}, {1, 4, 1, 1}, {2, 1, 1, 1}, {2, 2, 1, 1}, {2, 4, 1, 1},
                             {1, 2, 1, 2}, {1, 2, 2, 1}, {1, 2, 2, 2}, {1, 2, 4, 1}, {1, 4, 1, 2}, {1, 4, 2, 1},
                             {1, 4, 3, 1}, {1, 4, 4, 1}, {2, 4, 1, 2}, {2, 4, 1, 4}, {1, 4, 2, 4}};

// None where it is not for the problem: operands in lines along k at multiples of 16 bytes, 2 MiB in all.
bool serves(const TileProblem& p) {
  constexpr double kSmall = 2 << 20;
  if (p.k == 0 || p.splits_f32() || p.a_in != p.b_in || !p.a.lines || !p.b.lines || p.bytes() > kSmall) return false;
  return std::min(line_alignment(p.a), line_alignment(p.b)) >= 16;
}

class RegisterDirectFamily : public ViewFamilyOf<RegisterDirectConfig> {
 public:
  LinesOf lines() const override { return LinesOf::kAll; }

 private:
  TileCut cut(const RegisterDirectConfig& c) const override { return {c.tile_m, c.tile_n, 0, 1, false}; }
  int64_t joined(const TileProblem& p, const RegisterDirectConfig& c) const override {
    return c.warps_k * joined_by_tensor_cores(p.a_in);
  }
  std::vector<RegisterDirectConfig> configs(const TileProblem& p, const GpuTarget& target) const override;
  std::string reject(const RegisterDirectConfig& c, const TileProblem& p, const GpuTarget& target) const override;
  // The sums of all warps but the first of each tile.
  int shared_bytes(const TileProblem&, const RegisterDirectConfig& c) const override {
    constexpr int kSumBytes = 4;
    return c.warps_m * c.warps_n * (c.warps_k - 1) * sums_of(c) * 32 * kSumBytes;
  }
  double predict_us(const TileProblem& p, const RegisterDirectConfig& c, const GpuTarget& target) const override;
  CudaLaunch launch(const TileProblem& p, const RegisterDirectConfig& c, int) const override {
    CudaLaunch launch;
    launch.grid = {static_cast<uint32_t>(ceil_div(p.n, c.tile_n)), static_cast<uint32_t>(ceil_div(p.m, c.tile_m)),
                   static_cast<uint32_t>(p.batch)};
    return launch;
  }
  void describe(CudaInstance& i, const TileProblem& p, const RegisterDirectConfig& c) const override {
    i.headers = {"cuda/gemm/direct.h"}, i.kernel = "cuda::gemm_direct";
    i.store.reset();
    i.arguments.erase(i.arguments.begin());
    i.sizes = {{{"kBlocksM", blocks_m(c)},
                {"kBlocksN", blocks_n(c)},
                {"kWarpsM", c.warps_m},
                {"kWarpsN", c.warps_n},
                {"kWarpsK", c.warps_k},
                {"kChunks", c.chunks}}};
    // Whether no warp has less of k than another.
    i.flags = {{"kWholeK", line_bytes(p) == kChunkBytes * c.chunks * c.warps_k}};
  }
};

std::vector<RegisterDirectConfig> RegisterDirectFamily::configs(const TileProblem& p, const GpuTarget& target) const {
  std::vector<RegisterDirectConfig> found;
  if (!serves(p)) return found;
  const int64_t chunks = ceil_div(line_bytes(p), kChunkBytes);
  for (const Shape& shape : kShapes) {
    const int64_t rows = 16 * shape.blocks_m * shape.warps_m, columns = 8 * shape.blocks_n * shape.warps_n;
    if ((rows > 16 && rows >= p.m + 16) || (columns > 8 && columns >= p.n + 8)) continue;
    for (const int parts : {1, 2, 3, 4, 6, 8, 9, 12, 16}) {
      const int64_t each = ceil_div(chunks, parts);
      const int tiles = shape.warps_m * shape.warps_n;
      if (each > kMostChunks || (parts - 1) * each >= chunks || tiles * parts > kMostWarps) continue;
      if (parts > 4 && tiles > 1) continue;
      RegisterDirectConfig c;
      c.tile_m = static_cast<int>(rows), c.tile_n = static_cast<int>(columns);
      c.warps_m = shape.warps_m, c.warps_n = shape.warps_n;
      c.warps_k = parts, c.chunks = static_cast<int>(each);
      // More blocks than run at once have nothing left to hide.
      if (cut(c).tiles(p) <= 4 * int64_t{target.sms}) found.push_back(c);
    }
  }
  return found;
}

std::string RegisterDirectFamily::reject(const RegisterDirectConfig& c, const TileProblem& p,
                                         const GpuTarget& target) const {
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

double RegisterDirectFamily::predict_us(const TileProblem& p, const RegisterDirectConfig& c,
                                        const GpuTarget& target) const {
  const auto& d = target.model.direct;
  const auto blocks = static_cast<double>(cut(c).tiles(p));
  const double share = blocks / target.sms, of_sm = std::ceil(share);
  const double arriving = of_sm * (c.tile_m + c.tile_n) * static_cast<double>(line_bytes(p)) / d.arriving_per_us;
  return d.first_load_us + d.spread_us * std::min(share, 1.0) + (share > 1 ? d.second_us : 0) +
         p.bytes() / d.memory_per_us + arriving + d.piece_us * pieces_of(c) + (c.warps_k > 1 ? d.parts_us : 0) +
         d.sum_us * sums_of(c) * (c.warps_k - 1);
}

}  // namespace

const ViewFamily& register_direct_family() {
  static const RegisterDirectFamily family;
  return family;
}

}  // namespace heddle::schedule
