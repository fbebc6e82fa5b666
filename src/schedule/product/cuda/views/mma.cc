// The kernels with tiles in shared memory, by tensor cores (tile/kernel/cuda/gemm/sm80.h) or threads
// (tile/kernel/cuda/gemm/simt.h): which configurations a problem may take, and what they are expected to cost.
#include <algorithm>
#include <type_traits>

#include "schedule/product/cuda/long_sums.h"
#include "schedule/product/cuda/tile.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {
namespace {

constexpr double kTileSlower = 1.52;  // what the sums below leave out; some time beside it is the chip's
constexpr int kMostRegisters = 250;

struct Tile {
  int m, n, warps_m, warps_n;
};
// Parts of warps up to 64 x 64: 128 sums a thread.
constexpr Tile kMmaTiles[] = {{256, 128, 4, 2}, {128, 256, 2, 4}, {128, 128, 2, 2}, {128, 128, 2, 4}, {256, 64, 4, 1},
                              {64, 256, 1, 4},  {128, 64, 2, 2},  {64, 128, 2, 2},  {64, 64, 2, 2},   {128, 32, 4, 1},
                              {32, 128, 1, 4},  {64, 32, 2, 1},   {32, 64, 1, 2},   {32, 32, 2, 1},   {64, 16, 4, 1},
                              {128, 16, 4, 1},  {16, 128, 1, 4},  {16, 64, 1, 4}};
// Sums of a lane: 8 x 8 of 4 bytes, 8 x 4 of 8 bytes.
constexpr Tile kSimtTiles[] = {{128, 128, 4, 2}, {128, 64, 4, 2}, {64, 128, 2, 4}, {64, 64, 2, 2}, {32, 64, 1, 2}};

bool too_large(const Tile& tile, int64_t m, int64_t n) {
  if (tile.m * tile.n <= 1024) return false;
  return (tile.m > 16 && tile.m >= 2 * std::max<int64_t>(m, 16)) ||
         (tile.n > 16 && tile.n >= 2 * std::max<int64_t>(n, 16));
}

// Whether cp.async brings an operand to shared memory as it is.
bool copied(const OperandTraits& o, DType in, bool mma) {
  if (!o.view || o.element != in || o.width * size_of(in) < 4) return false;
  return mma ? o.along_k || size_of(in) > 1 : !o.along_k;
}

// Registers for the pieces of an operand that a thread loads at a time.
double load_registers(const OperandTraits& o, const MmaConfig& c, int rows, DType in, bool mma) {
  const double pieces = std::max(1.0, static_cast<double>(rows) * c.tile_k / o.width / c.threads());
  const double addresses = !o.image ? 0 : pieces <= 8 ? 12 + 3 * pieces : 46;
  if (copied(o, in, mma)) return addresses + 0.6 * std::max(pieces - 8, 0.0);
  const bool transposed = mma && !o.along_k && size_of(in) == 1;
  // Beyond a mask of 32 each has its condition in a register.
  const double conditions = std::max(pieces - 32, 0.0);
  return addresses + conditions + pieces * std::max(1.4, o.width * static_cast<double>(size_of(o.element)) / 4) +
         (transposed ? 45 * pieces : 4);
}

// What a thread needs, by count: sums, fragments, pieces on their way, addresses. Beyond 255 the compiler spills.
int registers_of(const TileProblem& p, const MmaConfig& c, bool mma) {
  constexpr double kRest = 54;
  const DType a_in = mma ? p.a_in : p.accumulator(), b_in = mma ? p.b_in : p.accumulator();
  double count = kRest + load_registers(p.a, c, c.tile_m, a_in, mma) + load_registers(p.b, c, c.tile_n, b_in, mma);
  if (mma) {
    const int m = c.tile_m / c.warps_m, n = c.tile_n / c.warps_n;
    const double fragments = m / 16 * 4 + n / 8 * 2;
    count += m * n / 32.0 + 2 * fragments;
    if (p.splits_f32()) count += 2 * fragments + 24;
    if (a_in == DType::kF8E4M3 || a_in == DType::kF8E5M2) count += 90;  // the compiler multiplies them as halves
  } else {
    const int m = c.tile_m / c.warps_m / 4, n = c.tile_n / c.warps_n / 8;
    count += static_cast<double>(p.sum_bytes()) / 4 * (m * n + 2 * (m + n));
  }
  return static_cast<int>(count);
}

// Columns of D that an epilogue sees at once.
int neighbours(const TileProblem& p) {
  return p.out_bytes <= 2 ? 8 : 4;
}

int64_t units_of(const TileProblem& p, const MmaConfig& c) {
  return ceil_div(p.m, c.tile_m) * ceil_div(p.n, c.tile_n) * p.batch * c.splits;
}

// What an SM has of a kernel.
struct Blocks {
  int shared_bytes, registers;  // of a block, of a thread
};

double compute_us(const TileProblem& p, const MmaConfig& c, bool mma, const Blocks& blocks, const GpuTarget& target) {
  const auto& model = target.model.mma;
  const auto element =
      static_cast<double>(mma ? static_cast<double>(size_of(p.a_in)) : static_cast<double>(p.sum_bytes()));
  const int64_t k_tiles = ceil_div(ceil_div(std::max<int64_t>(p.k, 1), c.tile_k), c.splits);
  const auto units = units_of(p, c);
  const int at_once = blocks_of_sm(c.threads(), blocks.shared_bytes, blocks.registers, target);
  const int64_t waves = ceil_div(units, int64_t{target.sms} * at_once);
  const auto busy = static_cast<double>(std::min<int64_t>(ceil_div(units, target.sms * waves), at_once));
  const double k = c.tile_k, area = static_cast<double>(c.tile_m) * c.tile_n, side = c.tile_m + c.tile_n;
  const double multiply = area * k / multiply_rate(p, mma, target);
  const double warp_reads = mma ? side / 2 * (c.warps_m + c.warps_n) : 2.0 * side;
  const double shared = (warp_reads + side) * k * element / model.shared_per_cycle;
  // Neighbours of a computed operand lie anywhere: each element takes a sector.
  constexpr double kSector = 32;
  const auto element_bytes = [](const OperandTraits& o) {
    return o.view ? static_cast<double>(size_of(o.element)) : kSector;
  };
  const double fill = (c.tile_m * element_bytes(p.a) + c.tile_n * element_bytes(p.b)) * k / model.l2_per_cycle;
  // Addresses, predicates and, through registers, conversions and stores: instructions of 4 schedulers, 32 lanes each.
  const auto issue = [&](const OperandTraits& o, double rows) {
    const double pieces = rows * k / o.width;
    const DType in = mma ? p.a_in : p.accumulator();
    if (mma && o.view && !copied(o, in, mma)) {
      return std::max(model.elementwise_cycles * rows * k * element / 16, pieces * (8 + 2.0 * o.width) / 128);
    }
    return pieces * (4 + (o.image ? 6 : 0) + (copied(o, in, mma) ? 0 : 4 + 2 * o.width)) / 128;
  };
  // Of f32 in two parts: three products and the sum of each block; taking fragments apart.
  const double split = 7 * area * k / 4096 + (c.tile_m * c.warps_n + c.tile_n * c.warps_m) * k / 32;
  const double instructions = (!mma             ? multiply
                               : p.splits_f32() ? split
                                                : multiply / 4) +
                              issue(p.a, c.tile_m) + issue(p.b, c.tile_n) + 40.0 * c.threads() / 128;
  // With few warps latencies show.
  const double hidden = hidden_share(busy * c.threads() / 32);
  // A k-tile is asked for stages - 1 tiles ahead of its use, and each costs a barrier.
  const double cycles =
      std::max(busy * std::max({multiply, shared, fill, instructions}) / hidden + model.barrier_cycles,
               model.latency_cycles / (c.stages - 1));
  const double out = c.splits > 1 ? static_cast<double>(p.sum_bytes()) : p.gated ? p.out_bytes / 2.0 : p.out_bytes;
  // What the epilogue reads comes piece after piece, each asked for when the one before is stored.
  constexpr double kLatency = 0.61;  // of a k-tile's; `kTileSlower` comes on top
  const double pieces = p.read_bytes == 0 || c.splits > 1 ? 0 : area / c.threads() / neighbours(p);
  const double read =
      std::max(pieces * kLatency * model.latency_cycles, busy * area * p.read_bytes / model.l2_per_cycle);
  // Instructions to quantise an element, whose latencies show with few warps, too.
  constexpr double kQuantise = 12;
  const double quantise = p.out_bytes == 1 && c.splits == 1 ? busy * area * kQuantise / 128 / hidden : 0;
  const double store = store_cycles(busy * area, out, target) + quantise + read;
  return static_cast<double>(waves) * (cycles * static_cast<double>(k_tiles) + store) /
         (target.model.chip.clock_ghz * 1e3);
}

double tile_us(const TileProblem& p, const MmaConfig& c, bool mma, int shared_bytes, const GpuTarget& target) {
  const double compute = compute_us(p, c, mma, {shared_bytes, registers_of(p, c, mma)}, target);
  const double share = memory_share(units_of(p, c), target);
  constexpr double kScattered = 11;  // times as long as whole sectors
  const double stored = p.results() * (p.scattered && c.splits == 1 ? kScattered * p.out_bytes : 0);
  return overlapped_us({compute, (p.bytes() + stored) / (target.model.mma.memory_per_us * share)});
}

template <typename C>
C config_of(const Tile& tile, int tile_k, int stages) {
  C c;
  c.tile_m = tile.m, c.tile_n = tile.n, c.tile_k = tile_k;
  c.warps_m = tile.warps_m, c.warps_n = tile.warps_n, c.stages = stages;
  return c;
}

// What both have in common.
template <typename C, bool kMma>
class TiledFamily : public ViewFamilyOf<C> {
 protected:
  bool tensor_cores() const override { return kMma; }
  TileCut cut(const C& c) const override { return {c.tile_m, c.tile_n, c.tile_k, c.splits, false}; }
  int64_t joined(const TileProblem& p, const C&) const override { return kMma ? joined_by_tensor_cores(p.a_in) : 1; }
  std::string reject(const C& c, const TileProblem& p, const GpuTarget&) const override {
    return registers_of(p, c, kMma) > kMostRegisters ? "it needs more registers than a thread has" : "";
  }
  double predict_us(const TileProblem& p, const C& c, const GpuTarget& target) const override {
    return target.model.mma.first_load_us + target.model.mma.tile_us +
           kTileSlower * tile_us(p, c, kMma, this->shared_bytes(p, c), target);
  }
  void describe(CudaInstance& i, const TileProblem&, const C& c) const override {
    i.sizes = {{{"kTileM", c.tile_m},
                {"kTileN", c.tile_n},
                {"kTileK", c.tile_k},
                {"kWarpsM", c.warps_m},
                {"kWarpsN", c.warps_n},
                {"kStages", c.stages}}};
  }
};

class MmaFamily : public TiledFamily<MmaConfig, true> {
  std::vector<MmaConfig> configs(const TileProblem& p, const GpuTarget& target) const override {
    std::vector<MmaConfig> found;
    for (const Tile& tile : kMmaTiles) {
      if (too_large(tile, p.m, p.n)) continue;
      for (const int k_bytes : {64, 128}) {
        for (const int stages : {4, 3, 6}) {
          // Long steps and many stages serve small tiles, whose loads are the limit.
          if ((k_bytes == 128 || stages == 6) && tile.m * tile.n > 128 * 64) continue;
          const int tile_k = k_bytes / static_cast<int>(size_of(p.a_in));
          add_splits(found, p, config_of<MmaConfig>(tile, tile_k, stages), 4, target);
        }
      }
    }
    return found;
  }
  bool reduces_neighbours(const MmaConfig& c) const override {
    return c.tile_n / c.warps_n % tile::kGemmPartialColumns == 0;
  }
  bool gates(const MmaConfig&, const TileProblem&) const override { return true; }
  int shared_bytes(const TileProblem& p, const MmaConfig& c) const override {
    return tile::gemm_sm80_shared_bytes(c.tile_m, c.tile_n, c.tile_k * static_cast<int>(size_of(p.a_in)), c.stages,
                                        c.warps_m, c.warps_n);
  }
  void describe(CudaInstance& i, const TileProblem& p, const MmaConfig& c) const override {
    TiledFamily::describe(i, p, c);
    i.headers = {"cuda/gemm/sm80.h"}, i.kernel = "sm80::gemm";
    i.types = {{"InA", p.a_in}, {"InB", p.b_in}};
    i.sizes[0].emplace_back("kNeighbours", neighbours(p));
  }
};

class SimtFamily : public TiledFamily<SimtConfig, false> {
  std::vector<SimtConfig> configs(const TileProblem& p, const GpuTarget& target) const override {
    std::vector<SimtConfig> found;
    for (const Tile& tile : kSimtTiles) {
      if (too_large(tile, p.m, p.n) && tile.m > 32) continue;
      if (p.sum_bytes() == 8 && tile.m * tile.n / (32 * tile.warps_m * tile.warps_n) > 32) continue;
      for (const int tile_k : {8, 16}) add_splits(found, p, config_of<SimtConfig>(tile, tile_k, 2), 8, target);
    }
    return found;
  }
  // clang, which compiles for AMD GPUs, loads all elements of a step before it multiplies the first. That is too much
  // for pixels, and for the 256 registers of a lane of 32.
  std::string reject(const SimtConfig& c, const TileProblem& p, const GpuTarget& target) const override {
    constexpr int kMostByClang = 8;
    const bool by_clang = target.has_mfma() || target.has_wmma();
    if (by_clang && c.tile_k > kMostByClang && (p.a.image || p.b.image || target.has_wmma())) {
      return "its loads need more registers than a thread has";
    }
    return TiledFamily::reject(c, p, target);
  }
  int shared_bytes(const TileProblem& p, const SimtConfig& c) const override {
    return tile::gemm_simt_shared_bytes(c.tile_m, c.tile_n, c.tile_k, p.sum_bytes(), c.stages);
  }
  void describe(CudaInstance& i, const TileProblem& p, const SimtConfig& c) const override {
    TiledFamily::describe(i, p, c);
    i.headers = {"cuda/gemm/simt.h"}, i.kernel = "cuda::gemm_simt";
  }
};

// Waves have parts of up to 64 x 64, in blocks of 16 x 16 (tile/kernel/hip/mfma.h).
constexpr Tile kWaveTiles[] = {{256, 128, 4, 2}, {128, 256, 2, 4}, {128, 128, 2, 2}, {128, 64, 2, 2}, {64, 128, 2, 2},
                               {64, 64, 2, 2},   {128, 32, 4, 1},  {32, 128, 1, 4},  {64, 32, 2, 1},  {32, 64, 1, 2},
                               {32, 32, 1, 1},   {64, 16, 4, 1},   {16, 64, 1, 4}};

// C: MfmaConfig or WmmaConfig.
template <typename C>
class WaveFamily : public TiledFamily<C, true> {
  static constexpr bool kMfma = std::is_same_v<C, MfmaConfig>;

  bool tensor_cores() const override { return false; }
  // The fewest elements of k of an instruction: those of f32 and f64.
  int64_t joined(const TileProblem&, const C&) const override { return kMfma ? 4 : 16; }
  std::vector<C> configs(const TileProblem& p, const GpuTarget& target) const override {
    const bool has_instruction = kMfma ? target.has_mfma() : target.has_wmma();
    if (!has_instruction || p.a_in != p.b_in || !multiplies_in_waves(p.a_in, target)) return {};
    std::vector<C> found;
    for (const Tile& tile : kWaveTiles) {
      if (too_large(tile, p.m, p.n)) continue;
      for (const int k_bytes : {64, 128}) {
        if (k_bytes == 128 && tile.m * tile.n > 128 * 64) continue;
        this->add_splits(found, p, config_of<C>(tile, k_bytes / static_cast<int>(size_of(p.a_in)), 2), 4, target);
      }
    }
    return found;
  }
  // By count, without what loads need: sums and fragments of a lane of 32. A lane of 64 has half of them.
  std::string reject(const C& c, const TileProblem&, const GpuTarget&) const override {
    constexpr int kMostSums = 64;
    const int sums = c.tile_m / c.warps_m * (c.tile_n / c.warps_n) / 32;
    return !kMfma && sums > kMostSums ? "it needs more registers than a thread has" : "";
  }
  int shared_bytes(const TileProblem& p, const C& c) const override {
    return tile::gemm_mfma_shared_bytes(c.tile_m, c.tile_n, c.tile_k * static_cast<int>(size_of(p.a_in)), c.stages);
  }
  void describe(CudaInstance& i, const TileProblem& p, const C& c) const override {
    TiledFamily<C, true>::describe(i, p, c);
    i.headers = {"hip/mfma.h"}, i.kernel = "cuda::gemm_mfma";
    i.types = {{"In", p.a_in, false}};  // f32 is multiplied as it is
  }
};

}  // namespace

int mma_registers(const TileProblem& p, const MmaConfig& c) {
  return registers_of(p, c, true);
}

double hidden_share(double warps) {
  return std::min(1.0, 0.55 + 0.06 * warps);
}

double memory_share(int64_t blocks, const GpuTarget& target) {
  return std::min(1.0, 0.15 + static_cast<double>(blocks) / target.sms);
}

double store_cycles(double results, double bytes, const GpuTarget& target) {
  constexpr double kSector = 32, kOfResult = 0.06;
  return target.model.mma.store_cycles + results * (bytes / kSector + kOfResult);
}

double mma_compute_us(const TileProblem& p, const MmaConfig& c, int shared_bytes, int registers,
                      const GpuTarget& target) {
  return kTileSlower * compute_us(p, c, true, {shared_bytes, registers}, target);
}

const ViewFamily& mma_family() {
  static const MmaFamily family;
  return family;
}
const ViewFamily& simt_family() {
  static const SimtFamily family;
  return family;
}

const ViewFamily& mfma_family() {
  static const WaveFamily<MfmaConfig> family;
  return family;
}
const ViewFamily& wmma_family() {
  static const WaveFamily<WmmaConfig> family;
  return family;
}

}  // namespace heddle::schedule
