// The kernel for few results of a long k (tile/kernel/cuda/gemm/k_reduction.h): which configurations a problem may
// take, and what they are expected to cost.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "schedule/product/cuda/tile.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kMostResults = 256, kLeastDepth = 256;  // of a product that it may be for
constexpr int kMostSums = 64, kMostLines = 24;            // of a thread: what its registers hold
constexpr int kMostLoads = 32;                            // of a thread under way

// Whether it reads the rows of all k as one run of memory.
bool reads_packed(const OperandTraits& o, int64_t lines, int tile) {
  return o.packed && lines == tile;
}

// How a thread reads `width` elements of k of each of `lines` lines: loads, and registers that they fill.
struct Reads {
  int loads, registers;
};
Reads reads_of(const OperandTraits& o, int64_t all, int lines, int width) {
  const int of_16_bytes = 16 / static_cast<int>(size_of(o.element));
  const int piece = reads_packed(o, all, lines) ? of_16_bytes : std::gcd(o.width, o.along_k ? width : lines);
  const int loads = lines * width / piece;
  return {loads, loads * static_cast<int>(ceil_div(piece * static_cast<int64_t>(size_of(o.element)), 4))};
}
Reads reads_of(const TileProblem& p, const KReductionConfig& c) {
  const Reads a = reads_of(p.a, p.m, c.tile_m, c.width), b = reads_of(p.b, p.n, c.tile_n, c.width);
  return {a.loads + b.loads, a.registers + b.registers};
}

// Elements of k that a thread takes at once: as many as are a piece of an operand that lies along k or is packed.
int width_of(const TileProblem& p, int tile_m, int tile_n) {
  const auto of = [](const OperandTraits& o, int64_t lines, int tile) {
    if (reads_packed(o, lines, tile))
      return o.width * size_of(o.element) == 16 ? 1 : 16 / static_cast<int>(size_of(o.element));
    return o.along_k ? o.width : 1;
  };
  return std::max(of(p.a, p.m, tile_m), of(p.b, p.n, tile_n));
}

int registers_of(const TileProblem& p, const KReductionConfig& c) {
  constexpr int kRest = 40;
  const int words = p.sum_bytes() / 4;
  return kRest + words * (c.tile_m * c.tile_n + c.tile_n + 1) + c.chunks * reads_of(p, c).registers;
}

bool fits_registers(const TileProblem& p, const KReductionConfig& c, const GpuTarget& target) {
  return registers_of(p, c) <= std::min(240, target.registers_per_sm / c.threads());
}

// Into how many equal tiles a side is cut.
std::vector<int> tiles_of(int64_t side) {
  std::vector<int> found;
  for (const int64_t most : {16, 8, 4}) {
    const auto tile = static_cast<int>(ceil_div(side, ceil_div(side, most)));
    if (std::find(found.begin(), found.end(), tile) == found.end()) found.push_back(tile);
  }
  return found;
}

class KReductionFamily : public ViewFamilyOf<KReductionConfig> {
  bool tensor_cores() const override { return false; }
  TileCut cut(const KReductionConfig& c) const override {
    return {c.tile_m, c.tile_n, c.threads() * c.width, c.splits, false};
  }
  int64_t joined(const TileProblem&, const KReductionConfig& c) const override { return c.threads(); }
  std::vector<KReductionConfig> configs(const TileProblem& p, const GpuTarget& target) const override;
  std::string reject(const KReductionConfig& c, const TileProblem& p, const GpuTarget& target) const override {
    if (!p.a.view || !p.b.view) return "a computed operand has no memory to stream";
    return fits_registers(p, c, target) ? "" : "it needs more registers than a thread has";
  }
  int shared_bytes(const TileProblem& p, const KReductionConfig& c) const override {
    return c.warps * c.tile_m * c.tile_n * p.sum_bytes();
  }
  double predict_us(const TileProblem& p, const KReductionConfig& c, const GpuTarget& target) const override;
  void describe(CudaInstance& i, const TileProblem& p, const KReductionConfig& c) const override {
    i.headers = {"cuda/gemm/k_reduction.h"}, i.kernel = "cuda::gemm_k_reduction";
    i.sizes = {{{"kTileM", c.tile_m}, {"kTileN", c.tile_n}},
               {{"kWidth", c.width}, {"kChunks", c.chunks}, {"kWarps", c.warps}}};
    i.flags = {{"kPackedA", reads_packed(p.a, p.m, c.tile_m)}, {"kPackedB", reads_packed(p.b, p.n, c.tile_n)}};
  }
};

std::vector<KReductionConfig> KReductionFamily::configs(const TileProblem& p, const GpuTarget& target) const {
  std::vector<KReductionConfig> found;
  if (p.m * p.n > kMostResults || p.k < kLeastDepth) return found;
  const int most_sums = kMostSums * 4 / p.sum_bytes();
  for (const int tile_m : tiles_of(p.m)) {
    for (const int tile_n : tiles_of(p.n)) {
      if (tile_m * tile_n > most_sums || tile_m + tile_n > kMostLines) continue;
      for (const int warps : {2, 4, 8, 16}) {
        KReductionConfig c;
        c.tile_m = tile_m, c.tile_n = tile_n, c.warps = warps, c.width = width_of(p, tile_m, tile_n);
        if (tile_m * tile_n > c.threads()) continue;
        for (const int chunks : {2, 4}) {
          KReductionConfig more = c;
          more.chunks = chunks;
          if (chunks * reads_of(p, c).loads <= kMostLoads && fits_registers(p, more, target)) c = more;
        }
        add_splits(found, p, c, 1, target);
      }
    }
  }
  return found;
}

double KReductionFamily::predict_us(const TileProblem& p, const KReductionConfig& c, const GpuTarget& target) const {
  const auto& model = target.model.mma;
  const auto units = static_cast<double>(cut(c).tiles(p) * c.splits);
  const int at_once = blocks_of_sm(c.threads(), shared_bytes(p, c), registers_of(p, c), target);
  const double blocks = std::min(std::ceil(units / target.sms), static_cast<double>(at_once));
  const double turns = std::ceil(units / (target.sms * blocks));
  const auto steps = static_cast<double>(ceil_div(ceil_div(p.k, cut(c).tile_k), c.splits));
  // Chunks wait for one another; the first has its time in the launch. What is left of a chunk is multiplied as zeros.
  const double chunks = turns * std::ceil(steps / c.chunks);
  const Reads reads = reads_of(p, c);
  const auto of_k = [](const OperandTraits& o, int lines) { return lines * static_cast<double>(size_of(o.element)); };
  const double step_bytes = (of_k(p.a, c.tile_m) + of_k(p.b, c.tile_n)) * cut(c).tile_k;
  const double memory = units * steps * step_bytes / model.memory_per_us;
  const double arriving = turns * blocks * steps * step_bytes / (target.model.chip.sm_gbps * 1e3);
  // A load and its address, a conversion of each element, and the sums: instructions of 4 schedulers, 32 lanes each.
  constexpr double kAddress = 6;
  const double rate = multiply_rate(p, false, target), width = c.width;
  const double step_cycles = c.threads() * (kAddress * reads.loads / 128 + (c.tile_m + c.tile_n) * width / 128 +
                                            c.tile_m * c.tile_n * width / rate);
  constexpr double kChunk = 2.3;  // latencies of a chunk's loads; the sum over lanes and warps takes one
  const double waits = (chunks - 1) * kChunk + turns;
  const double cycles = chunks * c.chunks * blocks * step_cycles + waits * model.latency_cycles;
  return model.skinny_load_us + std::max({memory, arriving, cycles / (target.model.chip.clock_ghz * 1e3)});
}

}  // namespace

const ViewFamily& k_reduction_family() {
  static const KReductionFamily family;
  return family;
}

}  // namespace heddle::schedule
