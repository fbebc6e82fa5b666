// Computes D = epilogue(A B) where B has weights of 2, 4 or 8 bits, which are widened in registers and never stored.
// Tensor cores multiply D^T = B^T A^T: B's columns are the rows of an instruction, A's rows its columns, so that few
// rows of A waste little. The weights go straight from memory to registers, in the order in which they are multiplied
// (tile/core/pack.h); they are requested several fragments ahead, the first ones before the previous kernel
// has ended. A goes through a ring in shared memory. The warps of a block divide columns and k.
//
//   struct Config {
//     using In = tile::half;                         // type of A, to which weights are widened: half or bfloat
//     static constexpr int kRowBlocks = 1;           // blocks of 16 columns of D per warp
//     static constexpr int kColumnBlocks = 1;        // blocks of 8 rows of D
//     static constexpr int kWarpsN = 1, kWarpsK = 8; // warps of a block, along columns and along k
//     static constexpr int kStages = 4;              // fragments along k in flight
//     static constexpr int kWidth = 8;               // W; each group of W elements of A is aligned to its size
//     static constexpr auto kStore = tile::GemmStore::kEpilogue;   // or kPartial
//   };
//
// A has `MatrixLines<In> lines(int batch)` along k. B is a PackedMatrix (tile/kernel/cuda/operand/packed.h). GemmArgs
// and the epilogue are those of tile/kernel/cuda/gemm/sm80.h.
#pragma once

#include "tile/arch/sm80/cp_async.h"
#include "tile/arch/sm80/mma.h"
#include "tile/arch/sm80/shared.h"
#include "tile/arch/sm90/dependent.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"
#include "tile/kernel/cuda/operand/load.h"
#include "tile/kernel/cuda/operand/operand.h"
#include "tile/kernel/cuda/operand/packed.h"
#include "tile/kernel/cuda/row.h"

namespace heddle::tile::cuda {

template <typename Config>
struct PackedTraits {
  static constexpr int kTileM = 8 * Config::kColumnBlocks, kTileN = 16 * Config::kRowBlocks * Config::kWarpsN;
  static constexpr int kThreads = 32 * Config::kWarpsN * Config::kWarpsK;
  static constexpr int kSlot = kTileM * kGemmRowBytes;  // bytes of A's rows in a fragment along k
  static constexpr int kStage = Config::kWarpsK * kSlot;
  static constexpr bool kAlone = Config::kWarpsN == 1;  // a warp shares its part of A with no other
};

// The rows of A that a block multiplies, in a ring of stages. A row of a slot has 64 elements, in pieces of 16 bytes.
// Pieces are swapped in pairs in every second row, which avoids bank conflicts when lanes read fragments. A thread
// copies the same pieces in every step, so only their k changes.
template <typename Config>
class PackedRows {
  using Traits = PackedTraits<Config>;
  using In = typename Config::In;
  static constexpr int kPieces = kGemmRowBytes / 16, kOfPiece = 16 / static_cast<int>(sizeof(In));
  static constexpr int kThreads = Traits::kAlone ? 32 : Traits::kThreads;
  static constexpr int kSlots = Traits::kAlone ? 1 : Config::kWarpsK;  // that the threads fill together
  static constexpr int kRowsAtOnce = kThreads / kPieces, kAll = kSlots * Traits::kTileM;
  static constexpr int kCopies = kAll > kRowsAtOnce ? kAll / kRowsAtOnce : 1;
  static constexpr int kStepK = Config::kWarpsK * kFragmentDepth;
  static_assert(kAll % kRowsAtOnce == 0 || kAll < kRowsAtOnce);

 public:
  __device__ PackedRows(uint8_t* ring, const MatrixLines<In>& lines, int first_row, int first_depth)
      : ring_(ring), leading_(lines.leading) {
    const int thread = static_cast<int>(threadIdx.x) % kThreads, warp = static_cast<int>(threadIdx.x) / 32;
    const int mine = thread / kPieces, slot = (Traits::kAlone ? warp : 0) + mine / Traits::kTileM;
    row_ = mine % Traits::kTileM, piece_ = thread % kPieces;
    rows_ = lines.lines - first_row < Traits::kTileM ? lines.lines - first_row : Traits::kTileM;
    const int k = (first_depth * Config::kWarpsK + slot) * kFragmentDepth + piece_ * kOfPiece;
    left_ = lines.length - k;
    from_ = lines.data + (first_row + row_) * leading_ + k;
    to_ = place(slot, row_, piece_);
    if (mine >= kAll) row_ = Traits::kTileM;  // nothing to copy
    const int lane = static_cast<int>(threadIdx.x) % 32;
    read_ = place(warp / Config::kWarpsN, lane / 4, lane % 4 * 2);
  }
  __device__ int rows() const { return rows_; }

  static __device__ void barrier() {
    if constexpr (Traits::kAlone) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  // Zeros the rows of the tile that A does not have, since no copy fills them.
  __device__ void clear() const {
    for (int stage = 0; stage < Config::kStages; ++stage) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        const int row = row_ + row_on(i);
        if (row >= rows_ && row < Traits::kTileM) *at(stage * Traits::kStage + to_on(i) + to_) = {};
      }
    }
  }

  // Requests the fragments that are `step` steps after the current position, for a stage. Elements beyond the end of k
  // are zero.
  __device__ void copy(int stage, int step) const {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int on = step * kStepK + slot_on(i) * kFragmentDepth, left = left_ - on;
      const bool wanted = row_ + row_on(i) < rows_;
      const In* from = from_ + row_on(i) * leading_ + on;
      const uint32_t to = to_ + stage * Traits::kStage + to_on(i);
      if constexpr (Config::kWidth == kOfPiece) {
        sm80::copy_async_if<16>(wanted, shared_address(ring_) + to, from, left > 0 ? 16u : 0u);
      } else if (wanted) {
        Neighbours<In, kOfPiece> v{};
#pragma unroll
        for (int e = 0; e < kOfPiece; ++e) {
          if (e < left) v.x[e] = from[e];
        }
        *at(to) = __builtin_bit_cast(FragmentWords<4>, v);
      }
    }
  }
  __device__ void move(int steps) {
    from_ += steps * kStepK, left_ -= steps * kStepK;
  }

  // Half of a fragment of the warp: the B of two instructions for 8 rows.
  __device__ FragmentWords<4> read(int stage, int block, int half) const {
    return *at((read_ ^ half * 16) + stage * Traits::kStage + block * 8 * kGemmRowBytes);
  }

 private:
  // The distance of a thread's copy i from its first one, in rows, in slots, and in bytes of a stage.
  static __device__ constexpr int row_on(int i) {
    return i * kRowsAtOnce % Traits::kTileM;
  }
  static __device__ constexpr int slot_on(int i) {
    return i * kRowsAtOnce / Traits::kTileM;
  }
  static __device__ constexpr int to_on(int i) {
    return slot_on(i) * Traits::kSlot + row_on(i) * kGemmRowBytes;
  }
  static_assert(kRowsAtOnce % 2 == 0);  // so that a thread's rows are all swapped, or none is

  static __device__ uint32_t place(int slot, int row, int piece) {
    return slot * Traits::kSlot + row * kGemmRowBytes + ((piece ^ (row & 1)) * 16);
  }
  __device__ FragmentWords<4>* at(uint32_t offset) const {
    return reinterpret_cast<FragmentWords<4>*>(ring_ + offset);
  }

  uint8_t* ring_;
  const In* from_;
  int64_t leading_;
  int row_, piece_, rows_, left_;
  uint32_t to_, read_;
};

// The fragments of weights that a warp multiplies, for kRowBlocks groups of columns.
template <typename Config, typename Matrix>
class PackedColumns {
  using Fragment = PackedFragment<Matrix>;

 public:
  __device__ PackedColumns(const GemmPackedArgs& matrix, int first_group, int depth) {
#pragma unroll
    for (int i = 0; i < Config::kRowBlocks; ++i) {
      const int group = first_group + i < matrix.groups ? first_group + i : matrix.groups - 1;
      at_[i] = Fragment::first(matrix, group, depth);
    }
  }
  // Loads the fragments `step` steps after the current position, if `wanted`.
  template <bool Once>
  __device__ void load(Fragment (&to)[Config::kRowBlocks], int step, bool wanted) const {
#pragma unroll
    for (int i = 0; i < Config::kRowBlocks; ++i) to[i].template load<Once>(at_[i], step * Config::kWarpsK, wanted);
  }
  __device__ void move(int steps) {
#pragma unroll
    for (int i = 0; i < Config::kRowBlocks; ++i) at_[i].move(steps * Config::kWarpsK);
  }

 private:
  typename Fragment::Place at_[Config::kRowBlocks];
};

// Multiplies one fragment along k: adds the products of B's i-th 16 columns and A's j-th 8 rows to acc[i][j].
template <typename Config, typename Matrix>
__device__ inline void multiply_packed(float (&acc)[Config::kRowBlocks][Config::kColumnBlocks][4],
                                       const PackedFragment<Matrix> (&weights)[Config::kRowBlocks],
                                       const FragmentWidener<typename Config::In, Matrix>& widener,
                                       const PackedRows<Config>& rows, int stage) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    FragmentWords<4> x[Config::kColumnBlocks];
#pragma unroll
    for (int j = 0; j < Config::kColumnBlocks; ++j) x[j] = rows.read(stage, j, half);
#pragma unroll
    for (int i = 0; i < Config::kRowBlocks; ++i) {
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        uint32_t a[4];
        widener.widen(a, weights[i], 2 * half + step);
#pragma unroll
        for (int j = 0; j < Config::kColumnBlocks; ++j) {
          const uint32_t b[2] = {x[j].x[2 * step], x[j].x[2 * step + 1]};
          sm80::Mma<typename Config::In>::issue(acc[i][j], a, b);
        }
      }
    }
  }
}

// Adds the sums of the warps that divided k, in the order of the warps, and passes them to the epilogue or stores them
// as partial sums. Sums lie in shared memory as [part of k][row of D][column].
template <typename Config, typename Epilogue>
__device__ inline void finish_packed(const GemmArgs& args, const GemmUnit& unit, const Epilogue& epilogue,
                                     const float* sums, int rows) {
  using Traits = PackedTraits<Config>;
  constexpr int W = 4, kPair = kColumnsOfPair<Epilogue>, kAcross = Traits::kTileN / kPair / W;
  constexpr int kPitch = gemm_packed_pitch(Traits::kTileN), kPart = Traits::kTileM * kPitch;
  const auto total = [&](float(&v)[W], int row, int column) {
#pragma unroll
    for (int c = 0; c < W; ++c) v[c] = 0;
#pragma unroll
    for (int part = 0; part < Config::kWarpsK; ++part) {
      const auto x = *reinterpret_cast<const Neighbours<float, W>*>(sums + part * kPart + row * kPitch + column);
#pragma unroll
      for (int c = 0; c < W; ++c) v[c] += x.x[c];
    }
  };
#pragma unroll 1
  for (int piece = static_cast<int>(threadIdx.x); piece < rows * kAcross; piece += Traits::kThreads) {
    const int row = piece / kAcross, at = piece % kAcross * W;
    const int column = unit.n / kPair + at, left = args.n - column, n = left < W ? left : W;
    if (n <= 0) continue;
    float v[W];
    total(v, row, kPair == 2 ? gemm_gate_column(at) : at);
    if constexpr (kPair == 2) {
      float w[W];
      total(w, row, gemm_gate_column(at) + kGemmGateColumns);
      epilogue.gate(v, w, unit.batch, unit.m + row, column, n);
    }
    if constexpr (Config::kStore == GemmStore::kPartial) {
      float* to = static_cast<float*>(args.partial) + unit.batch * args.p_batch + unit.split * args.p_split;
      store_row<W>(to + (unit.m + row) * args.p_row + column, v, n);
    } else {
      epilogue(v, unit.batch, unit.m + row, column, n);
    }
  }
}

// The kernel. It must be launched with PackedTraits<Config>::kThreads threads and gemm_packed_shared_bytes() bytes of
// dynamic shared memory.
template <typename Config, typename A, typename B, typename Epilogue>
__device__ inline void gemm_packed(const GemmArgs& args, const A& operand_a, const B& operand_b,
                                   const Epilogue& epilogue) {
  using Traits = PackedTraits<Config>;
  using Fragment = PackedFragment<B>;
  constexpr int kRowBlocks = Config::kRowBlocks, kColumnBlocks = Config::kColumnBlocks, kStages = Config::kStages;
  static_assert(kStages >= 2);
  extern __shared__ __align__(16) uint8_t raw_shared[];
  sm90::launch_dependents();
  const GemmUnit unit = gemm_unit(args, static_cast<int32_t>(blockIdx.x), Traits::kTileM, Traits::kTileN);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_n = warp % Config::kWarpsN, warp_k = warp / Config::kWarpsN;
  const GemmPackedArgs& matrix = operand_b.args;
  const int steps = unit.k.last - unit.k.first, depth = unit.k.first * Config::kWarpsK + warp_k;
  // The steps in which the warp has a fragment along k.
  const int all = (matrix.depths - depth + Config::kWarpsK - 1) / Config::kWarpsK, own = all < steps ? all : steps;

  Fragment weights[kStages][kRowBlocks];
  PackedColumns<Config, B> columns(matrix, unit.n / kFragmentRows + warp_n * kRowBlocks, depth);
#pragma unroll
  for (int s = 0; s < kStages; ++s) columns.template load<is_stream<B>>(weights[s], s, s < own);
  const FragmentWidener<typename Config::In, B> widener(matrix);
  PackedRows<Config> rows(raw_shared, operand_a.lines(unit.batch), unit.m, unit.k.first);
  rows.clear();

  sm90::grid_dependency_wait();
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    rows.copy(s, s);
    sm80::commit_copies();
  }
  float acc[kRowBlocks][kColumnBlocks][4] = {};
  const int turns = Traits::kAlone ? own : steps;
#pragma unroll 1
  for (int first = 0; first < turns; first += kStages) {
#pragma unroll
    for (int s = 0; s < kStages; ++s) {
      if (first + s >= turns) break;
      sm80::wait_copies<kStages - 2>();
      PackedRows<Config>::barrier();  // the copies have arrived, and all warps have read the previous stage
      rows.copy((s + kStages - 1) % kStages, s + kStages - 1);
      sm80::commit_copies();
      if (Traits::kAlone || first + s < own) multiply_packed<Config>(acc, weights[s], widener, rows, s);
      columns.template load<is_stream<B>>(weights[s], s + kStages, first + s + kStages < own);
    }
    rows.move(kStages), columns.move(kStages);
  }

  sm80::wait_copies<0>();
  __syncthreads();
  float* sums = reinterpret_cast<float*>(raw_shared);
  const float factor = __uint_as_float(static_cast<uint32_t>(127 - matrix.exponent) << 23);
  constexpr int kPitch = gemm_packed_pitch(Traits::kTileN);
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i) {
#pragma unroll
    for (int j = 0; j < kColumnBlocks; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = 8 * j + lane % 4 * 2 + e % 2;
        const int column = (warp_n * kRowBlocks + i) * 16 + lane / 4 + e / 2 * 8;
        sums[(warp_k * Traits::kTileM + row) * kPitch + column] = acc[i][j][e] * factor;
      }
    }
  }
  __syncthreads();
  finish_packed<Config>(args, unit, epilogue, sums, rows.rows());
}

}  // namespace heddle::tile::cuda
