// D = epilogue(A B) on sm_90 where a side of D is small, from operands whose lines along k begin at any address:
// cp.async brings the aligned pieces around them to shared memory as they lie, and warps read the words that mma.sync
// multiplies from wherever they are, two halves of a word at a time where need be. Nothing is copied or shifted first,
// there is no map to fetch, and the code is short: that is what counts where memory or latency is the limit.
//
// Sums over k do not mind its order, as long as both operands agree: of 128 bytes of k the four lanes of a row of a
// fragment have 32 each, side by side, so that a lane reads nine words for the eight that it multiplies.
//
// A generated unit gives a configuration with named fields,
//
//   struct Config {
//     using In = tile::half;                      // what is multiplied: of sm80::Mma, as it lies in memory
//     static constexpr int kTileM = 64, kTileN = 24;   // the long side; the small one, a multiple of 8
//     static constexpr int kWarpsM = 2, kWarpsK = 4;   // of a block: rows of 16, 32 or 64; parts of 128 bytes of k
//     static constexpr int kStages = 4;           // at least 2, of kWarpsK * 128 bytes of k
//     static constexpr int kParts = 4;            // of k: the blocks of a cluster
//     static constexpr int kAlignA = 2, kAlignB = 16;  // of all lines, in bytes
//     static constexpr int kNeighbours = 4;       // columns of D that the epilogue sees at once; 1 where rows of D
//                                                 // begin anywhere: lanes side by side write whole sectors
//     static constexpr bool kSwapped = true;      // the kernel computes the transpose of D
//     static constexpr auto kStore = tile::GemmStore::kEpilogue;   // or kPartial, where k is split beyond the cluster
//   };
//
// operands with `MatrixLines<Element> lines(int batch)` along k, and an epilogue that stores D, as for gemm_reduce().
#pragma once

#include "tile/arch/sm80/cp_async.h"
#include "tile/arch/sm80/ldmatrix.h"
#include "tile/arch/sm80/mma.h"
#include "tile/arch/sm80/shared.h"
#include "tile/arch/sm90/barrier.h"
#include "tile/kernel/cuda/fragment.h"
#include "tile/kernel/cuda/gemm_parts_sum.h"
#include "tile/kernel/cuda/load.h"
#include "tile/kernel/cuda/operand.h"

namespace heddle::tile::cuda {

template <typename Config>
struct LinesTraits {
  using In = typename Config::In;
  using Instruction = sm80::Mma<In>;
  using Acc = typename Instruction::Acc;
  static constexpr int kTileM = Config::kTileM, kTileN = Config::kTileN, kStages = Config::kStages;
  static constexpr int kWarpsM = Config::kWarpsM, kWarpsK = Config::kWarpsK, kParts = Config::kParts;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsK;
  static constexpr int kWarpRows = kTileM / kWarpsM, kBlocksM = kWarpRows / 16, kBlocksN = kTileN / 8;
  static constexpr int kStep = kWarpsK * kGemmRowBytes;  // bytes of k in a stage
  static constexpr int kLinePitch = gemm_lines_pitch(kWarpsK);
  static constexpr int kStageBytes = (kTileM + kTileN) * kLinePitch;
  // The tile as it lies in D, and the rows of it that one block of the cluster finishes.
  static constexpr int kRows = Config::kSwapped ? kTileN : kTileM, kColumns = Config::kSwapped ? kTileM : kTileN;
  static constexpr int kSliceRows = gemm_parts_slice(kRows, kParts);
  static constexpr int kPitch = gemm_parts_pitch(kColumns, Config::kSwapped);
  static constexpr int kSlice = kSliceRows * kPitch, kTileSums = kParts * kSlice;
  static constexpr int kAddends = kParts > 1 ? kParts : kWarpsK, kFinishers = kThreads;
  static constexpr int kNeighbours = Config::kNeighbours;
  static constexpr int kRingBytes = gemm_lines_ring_bytes(kTileM, kTileN, kWarpsK, kStages, kParts, Config::kSwapped);
  static_assert(kWarpRows % 16 == 0 && kTileN % 8 == 0 && kStages >= 2 && kParts >= 1 && kParts <= 8);
};

template <typename In, typename Operand>
__device__ inline MatrixLines<In> lines_of(const Operand& operand, int batch) {
  static_assert(same_bits<typename Operand::Element, In> && Operand::kLinesAlongK);
  const auto lines = operand.lines(batch);
  return {reinterpret_cast<const In*>(lines.data), lines.leading, lines.lines, lines.length};
}

// A thread's share of the lines of one operand: pieces of 16 bytes, with what stands before and behind the line. Lines
// that the matrix does not have are copies of its last one.
template <typename In, int Rows, int Align, int WarpsK, int Threads>
class LineCopier {
 public:
  __device__ LineCopier(const MatrixLines<In>& lines, int row, int64_t k_bytes) {
    leading_ = lines.leading * int(sizeof(In));
    at_ = reinterpret_cast<uint64_t>(lines.data) + row * leading_ + k_bytes;
    left_ = static_cast<int64_t>(lines.length) * int(sizeof(In)) - k_bytes;
    last_ = lines.lines - row - 1;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int begin = begin_of(line_of(i));
      from_[i] = begin - (Align < 16 ? (static_cast<int>(at_) + begin) & 15 : 0) + piece_of(i) * 16;
    }
  }
  // To `to`, a shared address.
  __device__ void copy(uint32_t to) const {
    constexpr int kMost = kStep + (Align < 16 ? 16 : 0);  // of a line
    if (left_ >= kMost) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (has(i)) sm80::copy_async<16>(to + target(i), reinterpret_cast<const void*>(at_ + from_[i]), 16);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const int left = static_cast<int>(left_) - (from_[i] - begin_of(line_of(i)));
        const int valid = left < 0 ? 0 : left < 16 ? left : 16;
        if (has(i)) sm80::copy_async<16>(to + target(i), reinterpret_cast<const void*>(at_ + from_[i]), valid);
      }
    }
  }
  __device__ void next() {
    at_ += kStep;
    left_ -= kStep;
  }

 private:
  static constexpr int kStep = WarpsK * kGemmRowBytes, kAcross = kStep / 16, kAtOnce = Threads / kAcross;
  // First the pieces of a step, then those behind it where lines do not begin at multiples of 16 bytes.
  static constexpr int kPieces = (Rows + kAtOnce - 1) / kAtOnce;
  static constexpr int kCount = kPieces + (Align < 16 ? (Rows + Threads - 1) / Threads : 0);

  __device__ static int line_of(int i) {
    return static_cast<int>(i < kPieces ? threadIdx.x / kAcross + i * kAtOnce : threadIdx.x + (i - kPieces) * Threads);
  }
  __device__ static int piece_of(int i) {
    return i < kPieces ? static_cast<int>(threadIdx.x % kAcross) : kAcross;
  }
  __device__ static bool has(int i) {
    return Rows % (i < kPieces ? kAtOnce : Threads) == 0 || line_of(i) < Rows;
  }
  __device__ static uint32_t target(int i) {
    return line_of(i) * gemm_lines_pitch(WarpsK) + piece_of(i) * 16;
  }
  // From at_ on; tiles of more than 2^31 bytes are refused.
  __device__ int begin_of(int line) const {
    return static_cast<int>((line < last_ ? line : last_) * leading_);
  }

  uint64_t at_;      // of the tile's first line
  int64_t leading_;  // in bytes
  int64_t left_;     // bytes of each line from here on
  int last_;         // line of the matrix, from the tile's first one on
  int from_[kCount];
};

// Where a lane finds its words of an operand's fragments. `Matrices`: both operands begin at multiples of 16 bytes, and
// words go to lanes as ldmatrix deals them; else a lane has the 32 bytes of each line that are its own.
template <typename In, int Align, bool Matrices, bool IsB, int Pitch>
class LineReader {
 public:
  // Fragments from line `first` of the tile on, which begins with line `row` of the operand; bytes of k from `from` on.
  __device__ LineReader(const MatrixLines<In>& lines, int row, int first, int from) {
    const uint32_t lane = threadIdx.x % 32;
    if constexpr (Matrices) {
      const uint32_t line = IsB ? lane % 8 : lane % 16, piece = IsB ? lane / 8 : lane / 16;
      at_[0] = (first + line) * Pitch + from + piece * 16;
    } else {
#pragma unroll
      for (int odd = 0; odd < (kAlike ? 1 : 2); ++odd) {
        const int line = first + static_cast<int>(lane / 4) + 8 * odd;
        uint32_t shift = 0;
        if constexpr (Align < 16) {
          const int64_t begin = (row + line) * lines.leading * int(sizeof(In));
          shift = static_cast<uint32_t>(reinterpret_cast<uint64_t>(lines.data) + begin) & 15;
        }
        at_[odd] = (line - 8 * odd) * Pitch + from + lane % 4 * 32 + (shift & 12);
        bits_[odd] = (shift & 3) * 8;
      }
    }
  }
  // Of A: 16 lines, 4 x 32 bytes of k.
  __device__ void read(uint32_t (&r)[4][4], const uint8_t* tile, int sixteen) const {
    if constexpr (Matrices) {
#pragma unroll
      for (int step = 0; step < 4; ++step) {
        sm80::load_matrices<false>(r[step], shared_address(tile) + at_[0] + sixteen * 16 * Pitch + step * 32);
      }
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t words[8];
        read_words(words, tile, 2 * sixteen + half);
#pragma unroll
        for (int i = 0; i < 8; ++i) r[i / 2][i % 2 * 2 + half] = words[i];
      }
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) sm80::round_fragment<In>(r[i / 4][i % 4]);
  }
  // Of B: 8 lines, two words for each of the 4 x 32 bytes.
  __device__ void read(uint32_t (&r)[4][2], const uint8_t* tile, int eight) const {
    uint32_t words[8];
    if constexpr (Matrices) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t four[4];
        sm80::load_matrices<false>(four, shared_address(tile) + at_[0] + eight * 8 * Pitch + half * 64);
#pragma unroll
        for (int i = 0; i < 4; ++i) words[4 * half + i] = four[i];
      }
    } else {
      read_words(words, tile, eight);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      sm80::round_fragment<In>(words[i]);
      r[i / 2][i % 2] = words[i];
    }
  }

 private:
  // Eight lines on, all begin at the same place within 16 bytes, unless elements are single bytes.
  static constexpr bool kAlike = sizeof(In) > 1 || Align >= 8;

  __device__ void read_words(uint32_t (&words)[8], const uint8_t* tile, int eight) const {
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
  }

  uint32_t at_[2] = {}, bits_[2] = {};
};

template <typename Config>
using LinesSums = typename LinesTraits<Config>::Acc[LinesTraits<Config>::kBlocksM][LinesTraits<Config>::kBlocksN][4];

// acc += what this warp has of a stage.
template <typename Config, typename ReaderA, typename ReaderB>
__device__ inline void lines_multiply(LinesSums<Config>& acc, const uint8_t* stage, const ReaderA& reader_a,
                                      const ReaderB& reader_b) {
  using Traits = LinesTraits<Config>;
  uint32_t a[Traits::kBlocksM][4][4];
#pragma unroll
  for (int i = 0; i < Traits::kBlocksM; ++i) reader_a.read(a[i], stage, i);
  // Products in a row that do not wait for each other.
  constexpr int kGroup = Traits::kBlocksM >= 4 || Traits::kBlocksN == 1 ? 1 : Traits::kBlocksM == 2 ? 2 : 4;
#pragma unroll
  for (int j = 0; j < Traits::kBlocksN; j += kGroup) {
    uint32_t b[kGroup][4][2];
#pragma unroll
    for (int c = 0; c < kGroup && j + c < Traits::kBlocksN; ++c) {
      reader_b.read(b[c], stage + Traits::kTileM * Traits::kLinePitch, j + c);
    }
#pragma unroll
    for (int step = 0; step < 4; ++step) {
#pragma unroll
      for (int c = 0; c < kGroup && j + c < Traits::kBlocksN; ++c) {
#pragma unroll
        for (int i = 0; i < Traits::kBlocksM; ++i) Traits::Instruction::issue(acc[i][j + c], a[i][step], b[c][step]);
      }
    }
  }
}

// Lays a warp's sums down in the order of D; `row`: its first one of the kernel's.
template <typename Config>
__device__ inline void lines_lay(const LinesSums<Config>& acc, typename LinesTraits<Config>::Acc* sums, int row) {
  using Traits = LinesTraits<Config>;
  using Acc = typename Traits::Acc;
  const auto lane = static_cast<int>(threadIdx.x % 32);
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

// The parts of k that the block's warps have, added in order to the first one's place.
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

// The kernel. Launched with LinesTraits<Config>::kThreads threads, gemm_lines_shared_bytes() of dynamic shared memory,
// clusters of kParts blocks along x; grid: tiles along m times kParts, tiles along n, batches times parts beyond the
// cluster. K-tiles of GemmPartsArgs are stages.
template <typename Config, typename A, typename B, typename Epilogue>
__device__ inline void gemm_lines(const GemmPartsArgs& args, const A& operand_a, const B& operand_b,
                                  const Epilogue& epilogue) {
  using Traits = LinesTraits<Config>;
  using In = typename Config::In;
  using Acc = typename Traits::Acc;
  constexpr int kParts = Traits::kParts, kStages = Traits::kStages, kStep = Traits::kStep;
  extern __shared__ __align__(128) uint8_t raw_shared[];
  const auto rank = static_cast<int32_t>(blockIdx.x % kParts);
  const PartsUnit unit = parts_unit<Config>(args, rank);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto warp_k = static_cast<int>(warp % Config::kWarpsK);
  const auto warp_row = static_cast<int>(warp / Config::kWarpsK) * Traits::kWarpRows;
  const MatrixLines<In> lines_a = lines_of<In>(operand_a, unit.batch), lines_b = lines_of<In>(operand_b, unit.batch);
  const int64_t first = static_cast<int64_t>(unit.k) * kStep;
  LineCopier<In, Config::kTileM, Config::kAlignA, Config::kWarpsK, Traits::kThreads> a(lines_a, unit.m, first);
  LineCopier<In, Config::kTileN, Config::kAlignB, Config::kWarpsK, Traits::kThreads> b(lines_b, unit.n, first);
  constexpr bool kMatrices = Config::kAlignA >= 16 && Config::kAlignB >= 16;
  constexpr int kPitch = Traits::kLinePitch;
  const int inside = warp_k * kGemmRowBytes;
  const LineReader<In, Config::kAlignA, kMatrices, false, kPitch> reader_a(lines_a, unit.m, warp_row, inside);
  const LineReader<In, Config::kAlignB, kMatrices, true, kPitch> reader_b(lines_b, unit.n, 0, inside);
  auto* sums = reinterpret_cast<Acc*>(raw_shared);
  auto* received = reinterpret_cast<Acc*>(raw_shared + Traits::kRingBytes);
  auto* all_here = reinterpret_cast<sm90::Barrier*>(received + Traits::kTileSums);  // what the cluster's blocks send

  LinesSums<Config> acc = {};
  int32_t read = 0, write = 0;
  // A stage is asked for kStages - 1 turns before it is read.
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
      a.next();
      b.next();
      write = write + 1 == kStages ? 0 : write + 1;
    }
    sm80::commit_copies();
    if (i >= 0) {
      lines_multiply<Config>(acc, raw_shared + read * Traits::kStageBytes, reader_a, reader_b);
      read = read + 1 == kStages ? 0 : read + 1;
    } else if (kParts > 1 && i == -1) {
      if (threadIdx.x == 0) {
        all_here->init(1);
        sm90::fence_barrier_init();
        all_here->arrive_expect(Traits::kTileSums * 4);
      }
      sm90::begun_arrive();
    }
  }
  __syncthreads();  // the ring is done
  lines_lay<Config>(acc, sums + warp_k * Traits::kTileSums, warp_row);
  if constexpr (kParts > 1) {
    if constexpr (Traits::kWarpsK > 1) {
      __syncthreads();
      lines_add_warps<Traits>(sums);
    }
    sm90::fence_async_shared();
    sm90::begun_wait();  // the others have begun
  }
  __syncthreads();
  if constexpr (kParts > 1) {
    if (warp == 0 && lane < kParts) {
      sm90::copy_to_block(received + rank * Traits::kSlice, sums + lane * Traits::kSlice, Traits::kSlice * 4, *all_here,
                          lane);
    }
    __syncwarp();
    all_here->wait(0);
    sm90::begun_arrive();
  }
  parts_finish<Config, Traits>(args, epilogue, kParts > 1 ? received : sums, unit, rank);
  if constexpr (kParts > 1) sm90::begun_wait();  // the others have what this block sent
}

}  // namespace heddle::tile::cuda
