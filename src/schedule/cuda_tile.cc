#include "schedule/cuda_tile.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "schedule/cuda_direct.h"
#include "schedule/cuda_lines.h"

namespace heddle::schedule {
namespace {

using Engine = CudaTileConfig::Engine;

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

constexpr double kClockGhz = 1.7;
constexpr double kSharedBytesPerCycle = 128, kL2BytesPerCycle = 48;  // of one SM
constexpr double kBytesPerUs = 4.3e6;                                // memory, whole chip
// Fitted, as in cuda_gemm.cc. What the sums below leave out of kernels with tiles: some time, and a factor.
constexpr double kFirstLoadUs = 2.2, kReduceUs = 2.8, kTileUs = 1.5, kTileSlower = 1.52;

bool is_integer(DType type) {
  return type != DType::kF64 && type != DType::kF32 && type != DType::kF16 && type != DType::kBF16 &&
         type != DType::kF8E4M3 && type != DType::kF8E5M2;
}

// Multiplications and additions of one SM in a cycle. Tensor cores through mma.sync: sm_90 reaches some 60% of what its
// own instruction does.
double rate(const CudaTileProblem& p, Engine engine, const CudaTarget& target) {
  const DType acc = p.accumulator();
  if (engine == Engine::kMma) {
    const double sixteen = target.sm >= 90 ? 1250 : target.sm == 80 ? 1024 : 512;
    if (p.a_in == DType::kF32) return p.tf32 ? sixteen / 2 : sixteen / 6;
    return is_integer(p.a_in) ? sixteen * 2 : sixteen;
  }
  if (acc == DType::kF64) return target.sm == 80 ? 32 : target.sm >= 90 ? 64 : 2;
  return acc == DType::kI64 ? 16 : acc == DType::kI32 ? 64 : 128;
}

double sum_bytes(const CudaTileProblem& p) {
  return static_cast<double>(size_of(p.accumulator()));
}

// Whether cp.async brings an operand to shared memory as it is.
bool copied(const CudaOperand& o, DType in, Engine engine) {
  if (!o.view || o.prologue || o.element != in || o.width * size_of(in) < 4) return false;
  return engine == Engine::kMma ? o.along_k || size_of(in) > 1 : !o.along_k;
}

// Registers for the pieces of an operand that a thread loads at a time.
double load_registers(const CudaOperand& o, const CudaTileConfig& c, int rows, DType in) {
  const double pieces = std::max(1.0, static_cast<double>(rows) * c.tile_k / o.width / c.threads());
  const double addresses = !o.image ? 0 : pieces <= 8 ? 12 + 3 * pieces : 46;
  if (copied(o, in, c.engine)) return addresses + 0.6 * std::max(pieces - 8, 0.0);
  const bool transposed = c.engine == Engine::kMma && !o.along_k && size_of(in) == 1;
  // Beyond a mask of 32 each has its condition in a register.
  const double conditions = std::max(pieces - 32, 0.0);
  return addresses + conditions + pieces * std::max(1.4, o.width * static_cast<double>(size_of(o.element)) / 4) +
         (transposed ? 45 * pieces : 4);
}

// Blocks of one SM, by shared memory, threads and registers.
int resident(const CudaTileProblem& p, const CudaTileConfig& c, const CudaTarget& target) {
  const int threads = c.threads(), registers = std::min(256, (c.registers(p) + 7) / 8 * 8);
  const int by_registers = target.registers_per_sm / (registers * threads);
  const int64_t shared = target.shared_bytes_per_block + 1024;
  const auto by_shared = static_cast<int>(shared / (c.shared_bytes(p) + 1024));
  return std::max(1, std::min({by_registers, by_shared, 2048 / threads, 32}));
}

double few_us(const CudaTileProblem& p, const CudaTileConfig& c, const CudaTarget& target) {
  const CudaOperand& wide = c.swapped ? p.a : p.b;
  const int64_t count = c.swapped ? p.m : p.n;
  const auto units = static_cast<double>(ceil_div(count, c.tile_n) * p.batch * c.splits);
  // All of the bandwidth needs some 32 KiB in flight on every SM: two or four tiles of k of each warp.
  const double warps = std::min(units * c.warps_m / target.sms, 8.0 * resident(p, c, target));
  const double pieces = wide.along_k ? 2 * c.rows : 4;
  const double in_flight = warps * 32 * wide.width * static_cast<double>(size_of(wide.element)) * pieces;
  const double share = std::min(1.0, in_flight / 32768) * (wide.width * size_of(wide.element) >= 8 ? 0.92 : 0.6);
  const double memory = p.bytes() / (kBytesPerUs * std::max(share, 0.02));
  // Each element is converted once and multiplied by all of the few.
  const double elements = static_cast<double>(count) * p.k * p.batch;
  const double cycles = target.sms * kClockGhz * 1e3;
  const double arithmetic = elements * (c.tile_m + 1.5) / (rate(p, c.engine, target) * cycles);
  // Addresses are computed anew for every piece: those of images divide.
  const auto address = [](const CudaOperand& o) { return o.image ? 150.0 : 8.0; };
  const CudaOperand& few = c.swapped ? p.b : p.a;
  const double of_few = wide.along_k ? address(few) * c.tile_m / c.rows : address(few) * c.tile_m;
  const double instructions = elements / wide.width * (address(wide) + of_few) / (128 * cycles);
  return std::max(memory, arithmetic + instructions);
}

double tile_us(const CudaTileProblem& p, const CudaTileConfig& c, const CudaTarget& target) {
  const bool mma = c.engine == Engine::kMma;
  const auto element = static_cast<double>(mma ? static_cast<double>(size_of(p.a_in)) : sum_bytes(p));
  const int64_t k_tiles = ceil_div(ceil_div(std::max<int64_t>(p.k, 1), c.tile_k), c.splits);
  const auto units = ceil_div(p.m, c.tile_m) * ceil_div(p.n, c.tile_n) * p.batch * c.splits;
  const int at_once = resident(p, c, target);
  const int64_t waves = ceil_div(units, int64_t{target.sms} * at_once);
  const auto busy = static_cast<double>(std::min<int64_t>(ceil_div(units, target.sms * waves), at_once));
  const double k = c.tile_k, area = static_cast<double>(c.tile_m) * c.tile_n, side = c.tile_m + c.tile_n;
  const double multiply = area * k / rate(p, c.engine, target);
  const double warp_reads = mma ? side / 2 * (c.warps_m + c.warps_n) : 2.0 * side;
  const double shared = (warp_reads + side) * k * element / kSharedBytesPerCycle;
  const double fill =
      (c.tile_m * static_cast<double>(size_of(p.a.element)) + c.tile_n * static_cast<double>(size_of(p.b.element))) *
      k / kL2BytesPerCycle;
  // Addresses, predicates and, through registers, conversions and stores: instructions of 4 schedulers, 32 lanes each.
  const auto issue = [&](const CudaOperand& o, double rows) {
    const double pieces = rows * k / o.width;
    const DType in = mma ? p.a_in : p.accumulator();
    // Measured on an H200: 16 bytes that go by elements through registers take 2.2 cycles of a multiprocessor.
    constexpr double kElementwise = 2.2;
    if (mma && o.view && !copied(o, in, c.engine)) {
      return std::max(kElementwise * rows * k * element / 16, pieces * (8 + 2.0 * o.width) / 128);
    }
    return pieces * (4 + (o.image ? 6 : 0) + (copied(o, in, c.engine) ? 0 : 4 + 2 * o.width)) / 128;
  };
  // Of f32 in two parts: three products and the sum of each block; taking fragments apart.
  const double split = 7 * area * k / 4096 + (c.tile_m * c.warps_n + c.tile_n * c.warps_m) * k / 32;
  const double instructions = (!mma             ? multiply
                               : p.splits_f32() ? split
                                                : multiply / 4) +
                              issue(p.a, c.tile_m) + issue(p.b, c.tile_n) + 40.0 * c.threads() / 128;
  // With few warps latencies show.
  const double warps = busy * c.threads() / 32;
  const double hidden = std::min(1.0, 0.55 + 0.06 * warps);
  // A k-tile is asked for stages - 1 tiles ahead of its use, and each costs a barrier.
  constexpr double kLatency = 900, kBarrier = 50;
  const double cycles =
      std::max(busy * std::max({multiply, shared, fill, instructions}) / hidden + kBarrier, kLatency / (c.stages - 1));
  const double out = c.splits > 1 ? sum_bytes(p) : p.out_bytes;
  const double store = 500 + busy * area * (out / 32 + 0.06);
  const double compute =
      static_cast<double>(waves) * (cycles * static_cast<double>(k_tiles) + store) / (kClockGhz * 1e3);
  const double share = std::min(1.0, 0.15 + static_cast<double>(units) / target.sms);
  constexpr double kScattered = 11;  // times as long as whole sectors, on an H200
  const double stored =
      static_cast<double>(p.m) * p.n * p.batch * (p.scattered && c.splits == 1 ? kScattered * p.out_bytes : 0);
  return std::max(compute, (p.bytes() + stored) / (kBytesPerUs * share));
}

}  // namespace

double CudaTileProblem::bytes() const {
  return a.bytes + b.bytes + static_cast<double>(m) * n * batch * out_bytes;
}

bool CudaTileProblem::on_tensor_cores(const CudaTarget& target) const {
  switch (a_in) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
      return true;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return target.sm >= 89;
    case DType::kI8:
    case DType::kU8:
      return true;
    default:
      return false;
  }
}

DType CudaTileProblem::accumulator() const {
  if (a_in == DType::kF64) return DType::kF64;
  if (!is_integer(a_in)) return DType::kF32;
  return size_of(a_in) == 8 ? DType::kI64 : DType::kI32;
}

std::string_view multiplied_type(const CudaTileProblem& problem, const CudaTileConfig& config, bool is_a) {
  const bool tensor =
      config.engine == Engine::kMma || config.engine == Engine::kLines || config.engine == Engine::kDirect;
  if (!tensor) return cuda_storage(problem.accumulator());
  const DType type = is_a ? problem.a_in : problem.b_in;
  if (type == DType::kF32) return problem.tf32 ? "tile::cuda::tf32" : "tile::cuda::tf32x2";
  return cuda_storage(type);
}

int CudaTileConfig::shared_bytes(const CudaTileProblem& p) const {
  const auto sum = static_cast<int>(sum_bytes(p));
  switch (engine) {
    case Engine::kMma:
      return tile::gemm_sm80_shared_bytes(tile_m, tile_n, tile_k * static_cast<int>(size_of(p.a_in)), stages, warps_m,
                                          warps_n);
    case Engine::kSimt:
      return tile::gemm_simt_shared_bytes(tile_m, tile_n, tile_k, sum, stages);
    case Engine::kFew:
      return (swapped ? p.a : p.b).along_k ? 0 : warps_m * tile_n * sum;
    case Engine::kLines:
      return tile::gemm_lines_shared_bytes(tile_m, tile_n, warps_n, stages, parts, swapped);
    case Engine::kDirect:
      return direct_shared_bytes(*this);
  }
  return 0;
}

int CudaTileConfig::registers(const CudaTileProblem& p) const {
  constexpr double kRest = 54;
  const double words = sum_bytes(p) / 4;
  const DType a_in = engine == Engine::kMma ? p.a_in : p.accumulator();
  const DType b_in = engine == Engine::kMma ? p.b_in : p.accumulator();
  if (engine == Engine::kFew) return static_cast<int>(kRest + words * 8 * (tile_m + 1));
  double count = kRest + load_registers(p.a, *this, tile_m, a_in) + load_registers(p.b, *this, tile_n, b_in);
  if (engine == Engine::kMma) {
    const int m = tile_m / warps_m, n = tile_n / warps_n;
    const double fragments = m / 16 * 4 + n / 8 * 2;
    count += m * n / 32.0 + 2 * fragments;
    if (p.splits_f32()) count += 2 * fragments + 24;
    if (a_in == DType::kF8E4M3 || a_in == DType::kF8E5M2) count += 90;  // the compiler multiplies them as halves
  } else {
    const int m = tile_m / warps_m / 4, n = tile_n / warps_n / 8;
    count += words * (m * n + 2 * (m + n));
  }
  return static_cast<int>(count);
}

std::string CudaTileConfig::name() const {
  if (engine == Engine::kFew) return fmt::format("few {}x{}{} k/{}", tile_m, tile_n, swapped ? " swapped" : "", splits);
  if (engine == Engine::kLines) {
    return fmt::format("lines {}x{}x{} w{}x{} s{} k/{} parts {}{}", tile_m, tile_n, tile_k, warps_m, warps_n, stages,
                       splits, parts, swapped ? " swapped" : "");
  }
  if (engine == Engine::kDirect) {
    return fmt::format("direct {}x{}x{} w{}x{}x{} s{}", tile_m, tile_n, tile_k, warps_m, warps_n, parts, stages);
  }
  return fmt::format("{} {}x{}x{} w{}x{} s{} k/{}", engine == Engine::kMma ? "mma" : "simt", tile_m, tile_n, tile_k,
                     warps_m, warps_n, stages, splits);
}

double floor_us(const CudaTileProblem& p, const CudaTarget& target) {
  const double per_sm = rate(p, p.on_tensor_cores(target) ? Engine::kMma : Engine::kSimt, target);
  return std::max(p.operations() / 2 / (per_sm * target.sms * kClockGhz * 1e3), p.bytes() / kBytesPerUs);
}

double predict_us(const CudaTileProblem& p, const CudaTileConfig& c, const CudaTarget& target) {
  if (c.engine == Engine::kLines) return std::max(predict_lines_us(p, c, target), floor_us(p, target));
  if (c.engine == Engine::kDirect) return std::max(predict_direct_us(p, c, target), floor_us(p, target));
  double us =
      kFirstLoadUs + (c.engine == Engine::kFew ? few_us(p, c, target) : kTileUs + kTileSlower * tile_us(p, c, target));
  if (c.splits > 1) {
    const double partial = sum_bytes(p) * static_cast<double>(p.m) * p.n * p.batch * c.splits;
    us += kReduceUs + 2 * partial / 5.5e6;
  }
  return std::max(us, floor_us(p, target));
}

}  // namespace heddle::schedule
