#include "schedule/product/cuda/wgmma/wgmma.h"

#include <algorithm>
#include <cmath>

#include "base/divide.h"

namespace heddle::schedule {
namespace {

using tile::GemmStore;

// Of a k-tile's row of 128 bytes the L2 gives five of its sectors of 32 bytes, not four, where it begins within one.
double sectors_over_bytes(const WgmmaProblem& p, bool a) {
  const bool k_major = a ? p.a_k_major : p.b_k_major;
  const int64_t leading = a ? p.lda : p.ldb, row = leading > 0 ? leading : k_major ? p.k : a ? p.m : p.n;
  return !p.windows && row * static_cast<int64_t>(size_of(p.in)) % 32 != 0 ? 1.25 : 1;
}

// Cycles for one k-tile of one block, whatever limits. `active`: share of the SMs that load.
double cycles_per_k_tile(const WgmmaProblem& p, const WgmmaConfig& c, double active, const CudaModel& model) {
  const bool windows = p.windows.has_value(), split = p.split;
  const bool a_k_major = c.swapped ? p.b_k_major : p.a_k_major, b_k_major = c.swapped ? p.a_k_major : p.b_k_major;
  // 64 x N x 32 bytes takes N / 2 cycles whatever the type, and not less than reading its operands.
  const double blocks = c.tile_m / 64.0;
  // Of f32 in two parts three products, as fast as shared memory lets them; a warpgroup waits for its own, adds them
  // and takes the next numbers apart, while another may multiply.
  const auto& w = model.wgmma;
  const double multiply =
      split ? 6.0 * c.tile_n + std::max(6 * (blocks - 1) * c.tile_n + w.split_together_cycles, w.split_alone_cycles)
            : 4 * blocks * c.tile_n / 2.0;
  const double a_bytes = tile::gemm_operand_bytes(c.tile_m, a_k_major);
  const double b_bytes = tile::gemm_operand_bytes(c.tile_n, b_k_major);
  const double writes = windows ? 1 : 0.5;  // what TMA writes, beside what is read
  const double shared = (a_bytes + blocks * b_bytes + writes * (a_bytes + b_bytes)) / w.shared_per_cycle;
  const double a_share = windows ? w.windows_share : 1, rate = windows ? w.windows_per_cycle : w.l2_per_cycle;
  const double fill = (a_bytes * a_share * sectors_over_bytes(p, !c.swapped) / c.cluster_n +
                       b_bytes * sectors_over_bytes(p, c.swapped) / c.cluster_m) /
                      rate * (w.l2_alone_share + (1 - w.l2_alone_share) * active);
  const double arriving = (a_bytes + b_bytes) / w.arriving_per_cycle;
  return std::max({multiply + w.barrier_cycles, shared, fill, arriving, w.least_tile_cycles});
}

// Cycles in which the warpgroup that loads puts the pieces of a k-tile together, one instruction of each of its four
// warps at a time.
double shift_cycles(const WgmmaProblem& p, const WgmmaConfig& c) {
  constexpr double kPieces = tile::kGemmRowBytes / 16, kInstructions = 42;
  const double rows = (p.shifted_a ? c.tile_m : 0) + (p.shifted_b ? c.tile_n : 0);
  return rows * kPieces / 128 * kInstructions;
}

// Of cycles that take so long at the full clock. Under load the clock falls, the less so the less an SM does in a
// cycle.
double at_the_clock_of_load(double compute_us, const WgmmaProblem& p, const GpuTarget& target) {
  constexpr double kCyclesShare = 0.7;
  const double limit_us = p.operations() / (target.model.wgmma.full_load * sustained_operations(p, target)) * 1e6;
  return compute_us < limit_us ? std::pow(compute_us, kCyclesShare) * std::pow(limit_us, 1 - kCyclesShare) : compute_us;
}

// `most`: blocks that may read a tile; `large`: bytes above which others had better stay. What another kernel may have
// written, or will read, may better stay unless it is larger.
template <typename C>
bool streams(const WgmmaProblem& p, const C& c, bool is_a, int64_t most, double large) {
  if (p.views || p.windows || (is_a != c.swapped ? p.step_a : p.step_b) == tile::kGemmOneForAll) return false;
  const int64_t m = c.swapped ? p.n : p.m, n = c.swapped ? p.m : p.n;
  const int64_t readers = is_a ? ceil_div(n, c.tile_n) : ceil_div(m, c.tile_m);
  const double bytes = static_cast<double>(is_a ? m : n) * static_cast<double>(p.k) * static_cast<double>(p.batch) *
                       static_cast<double>(size_of(p.in));
  return readers <= most && bytes > large;
}

// Bytes that stream-K reads from memory more than once. Its blocks are at different positions along k, so they share a
// piece of an operand only while the L2 holds it.
double reread_bytes(const WgmmaProblem& p, const WgmmaConfig& c, double k_tiles, const GpuTarget& target) {
  constexpr double kMissed = 0.65;  // of the reads, where the L2 holds next to nothing; fitted
  const auto element = static_cast<double>(size_of(p.in));
  const double operands = static_cast<double>(p.m * p.batches_of(p.step_a) + p.n * p.batches_of(p.step_b)) *
                          static_cast<double>(p.k) * element;
  const double missing = std::max(0.0, 1 - static_cast<double>(target.l2_bytes) / std::max(operands, 1.0));
  return kMissed * missing * k_tiles * (c.tile_m + c.tile_n) * tile::kGemmRowBytes;
}

bool begins_aligned(DType type, int64_t offset) {
  return offset * static_cast<int64_t>(size_of(type)) % 16 == 0;
}

}  // namespace

// Copies of operands to padded rows: one launch, read and written at the speed of memory.
double repack_us(const WgmmaProblem& p, const CudaModel& model) {
  const auto element = static_cast<double>(size_of(p.in));
  double bytes = 0;
  if (repacks_a(p)) bytes += static_cast<double>(p.m) * p.k * p.batches_of(p.step_a) * element;
  if (repacks_b(p)) bytes += static_cast<double>(p.n) * p.k * p.batches_of(p.step_b) * element;
  return bytes == 0 ? 0 : model.wgmma.repack_us + 2 * bytes / model.wgmma.repack_per_us;
}

WgmmaProblem WgmmaProblem::resolved() const {
  WgmmaProblem p = *this;
  const auto fill = [](int64_t& value, int64_t dense) { value = value == 0 ? std::max<int64_t>(dense, 1) : value; };
  fill(p.lda, a_k_major ? k : m), fill(p.ldb, b_k_major ? k : n), fill(p.ldd, columns());
  fill(p.stride_a, p.lda * (a_k_major ? m : k)), fill(p.stride_b, p.ldb * (b_k_major ? n : k));
  fill(p.stride_d, p.ldd * m);
  return p;
}

double WgmmaProblem::bytes() const {
  const auto d = [](int64_t x) { return static_cast<double>(x); };
  const double out_bytes = (quantises ? 1 : d(size_of(out))) + read_bytes;
  if (windows) {
    const double image =
        d(windows->images) * d(windows->size[0]) * d(windows->size[1]) * d(std::min(windows->channels, windows->pixel));
    return d(batch) * ((image + d(n) * d(k)) * d(size_of(in)) + d(m) * d(columns()) * out_bytes);
  }
  const double lines = d(batches_of(step_a)) * d(m) + d(batches_of(step_b)) * d(n);
  return lines * d(k) * d(size_of(in)) + d(batch) * d(m) * d(columns()) * out_bytes;
}

bool needs_repack(DType type, int64_t leading, int64_t batch_stride, int64_t batch) {
  const auto bytes = static_cast<int64_t>(size_of(type));
  return leading * bytes % 16 != 0 || (batch > 1 && (batch_stride * bytes % 16 != 0 || batch_stride == 0));
}

bool repacks_a(const WgmmaProblem& p) {
  return !p.views && !p.windows && !p.classed &&
         (needs_repack(p.in, p.lda, p.stride_a, p.batches_of(p.step_a)) || !begins_aligned(p.in, p.offset_a));
}
bool repacks_b(const WgmmaProblem& p) {
  return !p.views && !p.windows && !p.classed &&
         (needs_repack(p.in, p.ldb, p.stride_b, p.batches_of(p.step_b)) || !begins_aligned(p.in, p.offset_b));
}
bool needs_repack(const WgmmaProblem& p) {
  return repacks_a(p) || repacks_b(p);
}

int shared_bytes(const WgmmaProblem& problem, const WgmmaConfig& c) {
  const auto element = static_cast<int>(size_of(problem.in));
  const int shifted = (problem.shifted_a ? 1 : 0) + (problem.shifted_b ? 1 : 0);
  const int slots = tile::gemm_stages_behind(c.stages, shifted, c.tile_m + c.tile_n) + 1;
  const int raw = (problem.shifted_a ? tile::gemm_raw_bytes(c.tile_m, problem.a_k_major, element, slots) : 0) +
                  (problem.shifted_b ? tile::gemm_raw_bytes(c.tile_n, problem.b_k_major, element, slots) : 0);
  const int split = problem.split ? tile::gemm_split_bytes(c.tile_n, c.stages) : 0;
  const bool residual = loads_residual(problem, c);
  return raw + split + (residual ? tile::kGemmResidualBarrierBytes : 0) +
         tile::gemm_shared_bytes(c.tile_m, c.tile_n, c.swapped ? problem.b_k_major : problem.a_k_major,
                                 c.swapped ? problem.a_k_major : problem.b_k_major, c.stages, c.consumers,
                                 residual
                                     ? tile::gemm_residual_bytes(c.tile_m, c.tile_n, c.consumers, c.ping_pong)
                                     : tile::gemm_staging_bytes(store_of(problem, c), c.swapped, stored_n(problem, c),
                                                                static_cast<int>(size_of(problem.out))));
}

bool streams_operand(const WgmmaProblem& p, const WgmmaConfig& c, bool is_a) {
  const bool constant = is_a != c.swapped ? p.constant_a : p.constant_b;
  return streams(p, c, is_a, 1, constant ? 8 << 20 : 16 << 20);
}
bool streams_operand(const WgmmaProblem& p, const ClusterSplitKConfig& c, bool is_a) {
  return streams(p, c, is_a, 2, 8 << 20);
}

bool loads_residual(const WgmmaProblem& p, const WgmmaConfig& c) {
  const bool pieces = store_of(p, c) == GemmStore::kTma && !c.swapped && c.tile_n % 64 == 0 && size_of(p.out) == 2;
  return p.residual && pieces && !p.views && !c.stream_k;
}

double sustained_operations(const WgmmaProblem& p, const GpuTarget& target) {
  const auto& chip = target.model.chip;
  return chip.sustained_tflops * 1e12 * 2 / static_cast<double>(size_of(p.in)) / (p.split ? 3 : 1) * target.sms /
         chip.sms;
}

double predict_us(const WgmmaProblem& p, const WgmmaConfig& c, const GpuTarget& target) {
  const CudaModel& model = target.model;
  const auto& w = model.wgmma;
  const int64_t m = c.swapped ? p.n : p.m, n = c.swapped ? p.m : p.n;
  const auto element = static_cast<int64_t>(size_of(p.in));
  const int64_t k_tiles = std::max<int64_t>(ceil_div(p.k * element, tile::kGemmRowBytes), 1);
  const int cluster = c.cluster_m * c.cluster_n;
  const int64_t clusters = target.sms / cluster;
  const int64_t units = ceil_div(m, c.tile_m * c.cluster_m) * ceil_div(n, c.tile_n * c.cluster_n) * p.batch * c.splits;
  const int64_t running = std::min(units, clusters);
  const double share = static_cast<double>(running) * cluster / target.sms;
  const double tile_cycles = std::max(cycles_per_k_tile(p, c, std::min(share, 1.0), model), shift_cycles(p, c));
  // To quantise an element takes as many cycles as to store two bytes.
  const double stored_bytes = p.quantises ? 2 : static_cast<double>(size_of(p.out));
  const double out_bytes = c.splits > 1 ? 4.0 : stored_bytes / (p.gated ? 2 : 1);
  // Pieces of rows that end within a sector of 32 bytes are written in parts.
  // So are those that the end of D cuts, where every tile has one.
  const tile::GemmPiece piece = tile::gemm_piece(stored_n(p, c), static_cast<int>(size_of(p.out)));
  const bool cut = p.n < c.tile_n && p.columns() * static_cast<int64_t>(size_of(p.out)) % piece.bytes != 0;
  const bool parts = store_of(p, c) == GemmStore::kTma && !c.swapped && !p.windows && (piece.bytes % 32 != 0 || cut);
  const double store_cycles =
      w.store_cycles + c.tile_m * c.tile_n * (0.04 / c.consumers + out_bytes / (parts ? 11 : 21));
  if (c.stream_k) {
    // As many k-tiles for each block. Who has a tile adds the sums of all others, one after another, through L2.
    const auto each = static_cast<double>(ceil_div(units * k_tiles, target.sms));
    const auto others = static_cast<double>(ceil_div(target.sms, std::min<int64_t>(units, target.sms)));
    const double hand_on = (1 + others) * (c.tile_m * c.tile_n * 4 / w.l2_per_cycle + w.hand_on_cycles);
    const double cycles =
        each * tile_cycles + hand_on + std::max(1.0, static_cast<double>(units) / target.sms) * store_cycles;
    const double bytes = p.bytes() + reread_bytes(p, c, static_cast<double>(units * k_tiles), target);
    return repack_us(p, model) + w.first_load_us + w.stream_us +
           overlapped_us(
               {at_the_clock_of_load(cycles / (model.chip.clock_ghz * 1e3), p, target), bytes / w.memory_per_us});
  }
  // A ping-pong block hides the store of one tile under the multiplication of the next, for a change of turns; a
  // cooperative one does not.
  const auto waves = static_cast<double>(ceil_div(units, running));
  const double k_cycles = tile_cycles * static_cast<double>(ceil_div(k_tiles, c.splits));
  // What threads themselves read beside D, in the open even where warpgroups take turns.
  const double residual_cycles = p.residual && !loads_residual(p, c) ? w.residual_cycles * c.tile_m * c.tile_n : 0;
  const double store = store_cycles + residual_cycles;
  const double cycles = c.ping_pong ? waves * std::max(k_cycles + w.turn_cycles + residual_cycles, store) + store
                                    : waves * (k_cycles + store);
  const double compute_us = cycles / (model.chip.clock_ghz * 1e3);
  // Memory: what all blocks of one wave ask for beyond one read of each operand comes from L2.
  // Rows at any address: sectors at the edges of a tile's rows are written in parts, which takes several times as long
  // as whole ones.
  const double sectors = (c.swapped ? 16 : stored_n(p, c)) * static_cast<double>(size_of(p.out)) / 32;
  const double edges = store_of(p, c) == tile::GemmStore::kRows ? 2.24 * (sectors + 4) / sectors - 1 : 0;
  const double stored = edges * static_cast<double>(p.m) * p.columns() * p.batch * static_cast<double>(size_of(p.out));
  const double memory_us = (p.bytes() + stored) / (w.wave_per_us * std::min(1.0, 0.36 + 0.9 * share));
  double us =
      repack_us(p, model) + w.first_load_us + overlapped_us({at_the_clock_of_load(compute_us, p, target), memory_us});
  if (cluster > 1) us += w.cluster_us;
  if (c.splits > 1) {
    const double partial = 4.0 * static_cast<double>(p.m) * p.n * p.batch * c.splits;
    const double reduce = p.windows ? w.windows_reduce_us
                          : p.split ? w.split_reduce_us
                                    : w.reduce_us + w.part_us * c.splits;
    us += reduce + 2 * partial / w.partial_per_us;
  }
  return us;
}

}  // namespace heddle::schedule
