// D = epilogue(A B) on sm_90, for a D with one short side and operands whose lines along k begin at any address.
// cp.async copies the surrounding aligned 16-byte pieces to shared memory unchanged. Warps then read the words for
// mma.sync from any address, combining two words if necessary. Operands need no preceding copy or shift, no tensor map
// is fetched, and the code is short. These savings matter if memory bandwidth or latency is the limit.
//
// The order of k does not matter for the sum if both operands use the same order. So in each 128 bytes of k, each of
// the four lanes of a fragment's row gets 32 contiguous bytes. A lane thus loads nine words to obtain eight unaligned
// ones.
//
// A generated unit provides operands with `MatrixLines<Element> lines(int batch)` along k, an epilogue that stores D as
// for gemm_reduce(), and a configuration with named fields:
//
//   struct Config {
//     using In = tile::half;                      // operand type of sm80::Mma, as stored in memory
//     static constexpr int kTileM = 64, kTileN = 24;   // along the long and the short side; kTileN is a multiple of 8
//     static constexpr int kWarpsM = 2, kWarpsK = 4;   // warps per block: along rows (16, 32 or 64 rows each) and k
//     static constexpr int kStages = 4;           // at least 2; a stage has kWarpsK * 128 bytes of k
//     static constexpr int kClusterK = 4;         // blocks of a cluster, which divide k
//     static constexpr int kAlignA = 2, kAlignB = 16;  // alignment of all lines, in bytes
//     static constexpr int kNeighbours = 4;       // columns of D passed to the epilogue at once; 1 if rows of D
//                                                 // begin anywhere: neighbouring lanes then write whole sectors
//     static constexpr bool kSwapped = true;      // the kernel computes the transpose of D
//     static constexpr auto kStore = tile::GemmStore::kEpilogue;   // or kPartial, if several clusters divide k
//   };
#pragma once

#include "tile/arch/sm80/cp_async.h"
#include "tile/arch/sm80/mma.h"
#include "tile/arch/sm80/shared.h"
#include "tile/arch/sm90/barrier.h"
#include "tile/kernel/cuda/gemm/cluster_splitk_sum.h"
#include "tile/kernel/cuda/operand/fragment.h"
#include "tile/kernel/cuda/operand/load.h"
#include "tile/kernel/cuda/operand/operand.h"
#include "tile/kernel/cuda/operand/split_tf32.h"

namespace heddle::tile::cuda {

template <typename Config>
struct UnalignedTraits {
  using In = typename Config::In;
  using Instruction = sm80::Mma<In>;
  using Acc = typename Instruction::Acc;
  static constexpr int kTileM = Config::kTileM, kTileN = Config::kTileN, kStages = Config::kStages;
  static constexpr int kWarpsM = Config::kWarpsM, kWarpsK = Config::kWarpsK, kClusterK = Config::kClusterK;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsK;
  static constexpr int kWarpRows = kTileM / kWarpsM, kBlocksM = kWarpRows / 16, kBlocksN = kTileN / 8;
  static constexpr int kStep = kWarpsK * kGemmRowBytes;  // bytes of k in a stage
  static constexpr int kLinePitch = gemm_unaligned_pitch(kWarpsK);
  static constexpr int kStageBytes = (kTileM + kTileN) * kLinePitch;
  // kRows x kColumns is the tile in the order of D. kSliceRows of its rows are finished by one block of the cluster.
  static constexpr int kRows = Config::kSwapped ? kTileN : kTileM, kColumns = Config::kSwapped ? kTileM : kTileN;
  static constexpr int kSliceRows = cluster_splitk_slice(kRows, kClusterK);
  static constexpr int kPitch = cluster_splitk_pitch(kColumns, Config::kSwapped);
  static constexpr int kSlice = kSliceRows * kPitch, kTileSums = kClusterK * kSlice;
  static constexpr int kAddends = kClusterK > 1 ? kClusterK : kWarpsK, kFinishers = kThreads, kClasses = 1;
  static constexpr int kNeighbours = Config::kNeighbours;
  static constexpr int kRingBytes =
      gemm_unaligned_ring_bytes(kTileM, kTileN, kWarpsK, kStages, kClusterK, Config::kSwapped);
  static_assert(kWarpRows % 16 == 0 && kTileN % 8 == 0 && kStages >= 2 && kClusterK >= 1 && kClusterK <= 8);
};

template <typename In, typename Operand>
__device__ inline MatrixLines<In> lines_of(const Operand& operand, int batch) {
  static_assert(same_bits<typename Operand::Element, In> && Operand::kLinesAlongK);
  const auto lines = operand.lines(batch);
  return {reinterpret_cast<const In*>(lines.data), lines.leading, lines.lines, lines.length};
}

// Copies a thread's share of the lines of one operand, as aligned 16-byte pieces. The first and the last piece of a
// line may include bytes outside of the line.
template <typename In, int Rows, int Align, int WarpsK, int Threads>
class LineCopier {
 public:
  __device__ LineCopier(const MatrixLines<In>& lines, int row, int64_t k_bytes) {
    place_ = static_cast<int>(threadIdx.x) / kAcross;
    piece_ = static_cast<int>(threadIdx.x) % kAcross;
    rows_ = lines.lines - row;
    leading_ = lines.leading * int(sizeof(In));
    at_ = reinterpret_cast<uint64_t>(lines.data) + row * leading_ + k_bytes;
    left_ = static_cast<int64_t>(lines.length) * int(sizeof(In)) - k_bytes;
  }
  // Copies to `to`, a shared-memory address.
  __device__ void copy(uint32_t to) const {
#pragma unroll
    for (int i = 0; i < (Rows + kAtOnce - 1) / kAtOnce; ++i) {
      const int line = place_ + i * kAtOnce;
      if (Rows % kAtOnce == 0 || line < Rows) copy_piece(to, line, piece_);
    }
    if constexpr (Align < 16) {
#pragma unroll
      for (int i = 0; i < (Rows + Threads - 1) / Threads; ++i) {
        const int line = static_cast<int>(threadIdx.x) + i * Threads;
        if (Rows % Threads == 0 || line < Rows) copy_piece(to, line, kAcross);
      }
    }
  }
  __device__ void next(int64_t step) {  // step: in bytes
    at_ += step;
    left_ -= step;
  }

 private:
  static constexpr int kStep = WarpsK * kGemmRowBytes, kAcross = kStep / 16, kAtOnce = Threads / kAcross;

  __device__ void copy_piece(uint32_t to, int line, int piece) const {
    const uint64_t at = at_ + line * leading_;
    const int before = Align < 16 ? static_cast<int>(at) & 15 : 0;
    const int64_t left = left_ + before - piece * 16;
    const uint32_t valid = line >= rows_ || left <= 0 ? 0 : left < 16 ? static_cast<uint32_t>(left) : 16;
    sm80::copy_async<16>(to + line * gemm_unaligned_pitch(WarpsK) + piece * 16,
                         reinterpret_cast<const void*>(at - before + piece * 16), valid);
  }

  uint64_t at_;      // address of the tile's first line
  int64_t leading_;  // in bytes
  int64_t left_;     // bytes of each line that remain from here on
  int rows_;         // number of lines from the tile's first line on
  int place_, piece_;
};

// Reads a lane's 32 bytes from the lines of a fragment.
template <typename In, int Align, int Pitch>
class LineReader {
 public:
  // `line` is the lane's first line in the tile. `row` is the operand's line at which the tile begins.
  __device__ LineReader(const MatrixLines<In>& lines, int row, int line, int k_bytes) {
#pragma unroll
    for (int odd = 0; odd < (kAlike ? 1 : 2); ++odd) {
      uint32_t shift = 0;
      if constexpr (Align < 16) {
        const int64_t from = (row + line + 8 * odd) * lines.leading * int(sizeof(In));
        shift = static_cast<uint32_t>(reinterpret_cast<uint64_t>(lines.data) + from) & 15;
      }
      at_[odd] = line * Pitch + k_bytes + (shift & 12);
      bits_[odd] = (shift & 3) * 8;
    }
  }
  // Reads the words of the line that is 8 * `eight` lines after the lane's first line.
  __device__ void read(uint32_t (&words)[8], const uint8_t* tile, int eight) const {
    const int odd = kAlike ? 0 : eight % 2;
    const uint8_t* from = tile + at_[odd] + eight * 8 * Pitch;
    if constexpr (Align >= 16) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const auto four = reinterpret_cast<const Neighbours<uint32_t, 4>*>(from)[i];
#pragma unroll
        for (int j = 0; j < 4; ++j) words[4 * i + j] = four.x[j];
      }
    } else {
      const auto* word = reinterpret_cast<const uint32_t*>(from);
#pragma unroll
      for (int i = 0; i < 8; ++i) words[i] = word[i];
      if constexpr (Align < 4) {
        const uint32_t last = word[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) words[i] = __funnelshift_r(words[i], i < 7 ? words[i + 1] : last, bits_[odd]);
      }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) sm80::round_fragment<In>(words[i]);
  }
  // Returns element `k` of the line that is 8 * `eight` lines after the lane's first line, for elements of 4 bytes. k
  // counts from the beginning of the line's 128 bytes.
  __device__ float number(const uint8_t* tile, int eight, int k) const {
    static_assert(sizeof(In) == 4 && Align >= 4);
    const int lane = threadIdx.x % 32;
    return *reinterpret_cast<const float*>(tile + at_[0] + eight * 8 * Pitch + (k - lane % 4 * 8) * 4);
  }

 private:
  // True if lines whose indices differ by 8 begin at the same offset modulo 16 bytes. This may be false only for
  // single-byte elements.
  static constexpr bool kAlike = sizeof(In) > 1 || Align >= 8;
  uint32_t at_[2] = {}, bits_[2] = {};
};

template <typename Config>
using LinesSums =
    typename UnalignedTraits<Config>::Acc[UnalignedTraits<Config>::kBlocksM][UnalignedTraits<Config>::kBlocksN][4];

// Like lines_multiply(), but with FMA instructions, for f32.
template <typename Config, typename ReaderA, typename ReaderB>
__device__ inline void lines_multiply_by_fma(LinesSums<Config>& acc, const uint8_t* stage, const ReaderA& reader_a,
                                             const ReaderB& reader_b) {
  using Traits = UnalignedTraits<Config>;
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int k = 0; k < kGemmRowBytes / 4; ++k) {
    float of_b[Traits::kBlocksN][2];
#pragma unroll
    for (int j = 0; j < Traits::kBlocksN; ++j) {
      const float x = reader_b.number(stage + Traits::kTileM * Traits::kLinePitch, j, k);
#pragma unroll
      for (int c = 0; c < 2; ++c) of_b[j][c] = __shfl_sync(0xffffffffu, x, (lane % 4 * 2 + c) * 4);
    }
#pragma unroll
    for (int i = 0; i < Traits::kBlocksM * 2; ++i) {
      const float of_a = reader_a.number(stage, i, k);
#pragma unroll
      for (int j = 0; j < Traits::kBlocksN * 2; ++j) acc[i / 2][j / 2][i % 2 * 2 + j % 2] += of_a * of_b[j / 2][j % 2];
    }
  }
}

// acc += the product of this warp's part of a stage.
template <typename Config, typename ReaderA, typename ReaderB>
__device__ inline void lines_multiply(LinesSums<Config>& acc, const uint8_t* stage, const ReaderA& reader_a,
                                      const ReaderB& reader_b) {
  using Traits = UnalignedTraits<Config>;
  uint32_t a[Traits::kBlocksM][2][8];
#pragma unroll
  for (int i = 0; i < Traits::kBlocksM; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) reader_a.read(a[i][h], stage, 2 * i + h);
  }
  if constexpr (is_same<typename Config::In, tf32x2>) {
    float most_a = 0, most_b = 0;
#pragma unroll
    for (int i = 0; i < Traits::kBlocksM * 16; ++i) most_a = larger_magnitude(most_a, a[i / 16][i / 8 % 2][i % 8]);
#pragma unroll
    for (int j = 0; j < Traits::kBlocksN; ++j) {
      uint32_t b[8];
      reader_b.read(b, stage + Traits::kTileM * Traits::kLinePitch, j);
#pragma unroll
      for (int i = 0; i < 8; ++i) most_b = larger_magnitude(most_b, b[i]);
    }
    const bool by_fma = leaves_range(most_a) || leaves_range(most_b);
    if (__builtin_expect(by_fma, 0)) return lines_multiply_by_fma<Config>(acc, stage, reader_a, reader_b);
  }
#pragma unroll
  for (int j = 0; j < Traits::kBlocksN; ++j) {
    uint32_t b[8];
    reader_b.read(b, stage + Traits::kTileM * Traits::kLinePitch, j);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      const uint32_t of_b[2] = {b[2 * step], b[2 * step + 1]};
#pragma unroll
      for (int i = 0; i < Traits::kBlocksM; ++i) {
        const uint32_t of_a[4] = {a[i][0][2 * step], a[i][1][2 * step], a[i][0][2 * step + 1], a[i][1][2 * step + 1]};
        Traits::Instruction::issue(acc[i][j], of_a, of_b);
      }
    }
  }
}

// Writes a warp's sums to shared memory in the order of D. `row` is the warp's first row in the kernel's order.
template <typename Config>
__device__ inline void lines_lay(const LinesSums<Config>& acc, typename UnalignedTraits<Config>::Acc* sums, int row) {
  using Traits = UnalignedTraits<Config>;
  using Acc = typename Traits::Acc;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < Traits::kBlocksM; ++i) {
#pragma unroll
    for (int j = 0; j < Traits::kBlocksN; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int m = row + 16 * i + 8 * h + lane / 4, n = 8 * j + 2 * (lane % 4);
        if constexpr (Config::kSwapped) {
          sums[n * Traits::kPitch + m] = acc[i][j][2 * h];
          sums[(n + 1) * Traits::kPitch + m] = acc[i][j][2 * h + 1];
        } else {
          *reinterpret_cast<Neighbours<Acc, 2>*>(sums + m * Traits::kPitch +
                                                 n) = {{acc[i][j][2 * h], acc[i][j][2 * h + 1]}};
        }
      }
    }
  }
}

// Adds, in order, the sums of the block's warps that divide k. The result replaces the sums of the first warp.
template <typename Traits>
__device__ inline void lines_add_warps(typename Traits::Acc* sums) {
  using Four = Neighbours<typename Traits::Acc, 4>;
  static_assert(Traits::kTileSums % 4 == 0);
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) * 4; i < Traits::kTileSums; i += Traits::kThreads * 4) {
    Four sum = *reinterpret_cast<const Four*>(sums + i);
#pragma unroll
    for (int w = 1; w < Traits::kWarpsK; ++w) {
      const Four x = *reinterpret_cast<const Four*>(sums + w * Traits::kTileSums + i);
#pragma unroll
      for (int j = 0; j < 4; ++j) sum.x[j] += x.x[j];
    }
    *reinterpret_cast<Four*>(sums + i) = sum;
  }
}

// The kernel. Launched with UnalignedTraits<Config>::kThreads threads, gemm_unaligned_shared_bytes() bytes of dynamic
// shared memory, and clusters of kClusterK blocks along x. Grid: x = tiles along m * kClusterK, y = tiles along n, z =
// batches * clusters that divide k. A k-tile of ClusterSplitKArgs is a stage here.
template <typename Config, typename A, typename B, typename Epilogue>
__device__ inline void gemm_unaligned(const ClusterSplitKArgs& args, const A& operand_a, const B& operand_b,
                                      const Epilogue& epilogue) {
  using Traits = UnalignedTraits<Config>;
  using In = typename Config::In;
  using Acc = typename Traits::Acc;
  constexpr int kClusterK = Traits::kClusterK, kStages = Traits::kStages, kStep = Traits::kStep;
  extern __shared__ __align__(128) uint8_t raw_shared[];
  const auto rank = static_cast<int32_t>(blockIdx.x % kClusterK);
  const ClusterSplitKUnit unit = cluster_splitk_unit<Config, Traits, true>(args, rank);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_k = warp % Config::kWarpsK, warp_row = warp / Config::kWarpsK * Traits::kWarpRows;
  const MatrixLines<In> lines_a = lines_of<In>(operand_a, unit.batch), lines_b = lines_of<In>(operand_b, unit.batch);
  const int64_t first = static_cast<int64_t>(unit.k) * kStep, step = static_cast<int64_t>(unit.step) * kStep;
  LineCopier<In, Config::kTileM, Config::kAlignA, Config::kWarpsK, Traits::kThreads> a(lines_a, unit.m, first);
  LineCopier<In, Config::kTileN, Config::kAlignB, Config::kWarpsK, Traits::kThreads> b(lines_b, unit.n, first);
  const int inside = warp_k * kGemmRowBytes + lane % 4 * 32;
  const LineReader<In, Config::kAlignA, Traits::kLinePitch> reader_a(lines_a, unit.m, warp_row + lane / 4, inside);
  const LineReader<In, Config::kAlignB, Traits::kLinePitch> reader_b(lines_b, unit.n, lane / 4, inside);
  auto* sums = reinterpret_cast<Acc*>(raw_shared);
  auto* received = reinterpret_cast<Acc*>(raw_shared + Traits::kRingBytes);
  auto* all_here = reinterpret_cast<sm90::Barrier*>(received + Traits::kTileSums);  // sums of the cluster's blocks

  LinesSums<Config> acc = {};
  int32_t read = 0, write = 0;
  // A stage is requested kStages - 1 iterations before it is read.
#pragma unroll 1
  for (int32_t i = 1 - kStages; i < unit.count; ++i) {
    if (i >= 0) {
      sm80::wait_copies<kStages - 2>();
      __syncthreads();
    }
    if (i + kStages - 1 < unit.count) {
      const uint32_t to = shared_address(raw_shared) + write * Traits::kStageBytes;
      a.copy(to);
      b.copy(to + Config::kTileM * Traits::kLinePitch);
      a.next(step);
      b.next(step);
      write = write + 1 == kStages ? 0 : write + 1;
    }
    sm80::commit_copies();
    if (i >= 0) {
      lines_multiply<Config>(acc, raw_shared + read * Traits::kStageBytes, reader_a, reader_b);
      read = read + 1 == kStages ? 0 : read + 1;
    } else if (kClusterK > 1 && i == -1) {
      if (threadIdx.x == 0) {
        all_here->init(1);
        sm90::fence_barrier_init();
        all_here->arrive_expect(parts_bytes<Config, Traits>);
      }
      sm90::cluster_arrive();
    }
  }
  __syncthreads();  // from here on, the ring is not used
  lines_lay<Config>(acc, sums + warp_k * Traits::kTileSums, warp_row);
  if constexpr (kClusterK > 1) {
    if constexpr (Traits::kWarpsK > 1) {
      __syncthreads();
      lines_add_warps<Traits>(sums);
    }
    cluster_splitk_exchange<Config, Traits>(sums, received, *all_here, rank);
  } else {
    __syncthreads();
  }
  cluster_splitk_finish<Config, Traits>(args, epilogue, kClusterK > 1 ? received : sums, sums + rank * Traits::kSlice,
                                        unit, rank);
  if constexpr (kClusterK > 1) sm90::cluster_wait();  // now the other blocks have received this block's sums
}

}  // namespace heddle::tile::cuda
