// The end of a GEMM block: applies the epilogue to the accumulators and stores the results.
#pragma once

#include "tile/arch/sm80/ldmatrix.h"
#include "tile/arch/sm90/convert.h"
#include "tile/arch/sm90/stmatrix.h"
#include "tile/arch/sm90/tma.h"
#include "tile/arch/sm90/wgmma.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"
#include "tile/kernel/cuda/row.h"

namespace heddle::tile::sm90 {

using cuda::epilogue_value_t;
using cuda::InSteps;
using cuda::NoEpilogue;
using cuda::ReadsMatrices;
using cuda::ReadsVectors;
using cuda::ResidualBytes;
using cuda::ReturnsOnly;

// An epilogue that consists of the inner step of another epilogue.
template <typename Epilogue>
struct InnerStep {
  static constexpr bool kReturnsOnly = true;
  const Epilogue& epilogue;

  template <typename T, int W, typename... Residual>
  __device__ void operator()(T (&v)[W], int batch, int row, int col, int n, const Residual&... residual) const {
    epilogue.inner(v, batch, row, col, n, residual...);
  }
};

// True if accumulators are initialised with the epilogue's accumulator_init().
template <typename Config, typename Epilogue, typename Acc>
inline constexpr bool kInitsAccumulators =
    Config::kStore == GemmStore::kTma && !kSwapped<Config> && sizeof(typename Config::Out) == 2 &&
    is_same<Acc, float> && InSteps<Epilogue>::inits;

// Applies the epilogue to two neighbouring accumulators in row `m` of the kernel's result. If operands are swapped,
// this result is the transpose of D, so the pair is in one column of D.
//
// For pairs outside D, the results are undefined and must not be read. An epilogue without side effects is called even
// for these pairs, with the nearest position in D, because a branch around each pair would cost more than the epilogue.
//
// `Inside`: the columns are known to be in D. `residual`: additional arguments of the epilogue.
template <bool Swapped, bool Inside = false, typename T, typename Epilogue, typename... Residual>
__device__ inline void apply_pair(T (&v)[2], const Epilogue& epilogue, const GemmArgs& args, int batch, int m, int n,
                                  const Residual&... residual) {
  constexpr bool kAlways = ReturnsOnly<Epilogue>::value;
  if (!kAlways && (m >= args.m || n >= args.n)) return;
  const int valid = kAlways || args.n - n >= 2 ? 2 : args.n - n;
  if constexpr (Swapped) {
    const int column = kAlways && m >= args.m ? args.m - 1 : m;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      T one[1] = {v[i]};
      if (i < valid) epilogue(one, batch, kAlways && n + i >= args.n ? args.n - 1 : n + i, column, 1);
      v[i] = one[0];
    }
  } else {
    const int column = !Inside && kAlways && n >= args.n ? args.n - 2 : n;
    epilogue(v, batch, kAlways && m >= args.m ? args.m - 1 : m, column, valid, residual...);
  }
}

// Sets v to accumulators 2 h and 2 h + 1 of matrix j, which has 8 columns of D. (m, n) is the position of the pair in
// D. If the epilogue has a gate, matrix j is computed from matrices 2 j and 2 j + 1 of `acc`.
template <bool Inside = false, typename T, int Sums, typename Acc, typename Epilogue>
__device__ inline void take_pair(T (&v)[2], const Acc (&acc)[Sums], int j, int h, const Epilogue& epilogue,
                                 const GemmArgs& args, int batch, int m, int n) {
  constexpr int kPair = cuda::kColumnsOfPair<Epilogue>;
  const int at = 4 * kPair * j + 2 * h;
  v[0] = static_cast<T>(acc[at]), v[1] = static_cast<T>(acc[at + 1]);
  if constexpr (kPair == 2) {
    const T w[2] = {static_cast<T>(acc[at + 4]), static_cast<T>(acc[at + 5])};
    constexpr bool kAlways = ReturnsOnly<Epilogue>::value;
    if (!kAlways && (m >= args.m || n >= args.n)) return;
    epilogue.gate(v, w, batch, kAlways && m >= args.m ? args.m - 1 : m,
                  !Inside && kAlways && n >= args.n ? args.n - 2 : n, 2);
  }
}

// A thread's elements of a piece of a residual matrix, one pair of neighbours from each 8 x 8 matrix. Element size: 1
// or 2 bytes.
template <int Matrices, int Element>
struct ResidualFragments;

template <int Matrices>
struct ResidualFragments<Matrices, 2> {
  uint32_t words[Matrices][2];

  __device__ cuda::FromRegister pair(int j, int h) const { return {words[j][h]}; }
  // Loads a piece from shared memory, where rows have `Bytes` bytes and are swizzled.
  template <int Bytes>
  __device__ void load(const uint8_t* from) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < Matrices; j += 2) {
      uint32_t r[4];
      const uint32_t at = (lane % 8 + lane / 8 % 2 * 8) * Bytes + (j + lane / 16) * 16;
      sm80::load_matrices<false>(r, shared_address(from) + swizzle<Bytes>(at));
#pragma unroll
      for (int i = 0; i < 4; ++i) words[j + i / 2][i % 2] = r[i];
    }
  }
};

// The pair in the upper row is in the low half of a word, the pair 8 rows below it in the high half.
template <int Matrices>
struct ResidualFragments<Matrices, 1> {
  uint32_t words[Matrices];

  __device__ cuda::FromRegister pair(int j, int h) const { return {words[j] >> (16 * h)}; }
  template <int Bytes>
  __device__ void load(const uint8_t* from) {
    const int lane = threadIdx.x % 32;
    const auto pair_at = [&](int row, int column) -> uint32_t {
      return *reinterpret_cast<const uint16_t*>(from + swizzle<Bytes>(row * Bytes + column));
    };
#pragma unroll
    for (int j = 0; j < Matrices; ++j) {
      const int row = lane / 4, column = 8 * j + 2 * (lane % 4);
      words[j] = pair_at(row, column) | pair_at(row + 8, column) << 16;
    }
  }
};

// Loads pieces of a residual matrix as accumulator fragments. A piece has 16 rows of `Bytes` bytes, and elements have
// `Element` bytes. A whole warp loads a piece with 16-byte accesses and redistributes it through shared memory, because
// loads of pairs in fragment order would touch eight cache lines per access. Piece p is the (p % Across)-th of the
// pieces beside each other in the rows from 64 * (p / Across) on, relative to the warp's first piece.
template <int Bytes, int Element, int Across, typename Epilogue>
class ResidualPieces {
  static constexpr int kChunks = Bytes / 16, kInChunk = 16 / Element, kColumns = Bytes / Element;
  static constexpr int kLoads = Bytes / 32;  // of each lane

 public:
  __device__ ResidualPieces(const Epilogue& epilogue, const GemmArgs& args, int batch, int row, int col, int first)
      : epilogue_(epilogue), args_(args), batch_(batch), row_(row), col_(col) {
    fetch(first);
  }
  // Starts loading a piece. Elements outside D are undefined.
  __device__ void fetch(int piece) {
    const int lane = threadIdx.x % 32;
    int col = col_ + piece % Across * kColumns + lane % kChunks * kInChunk;
    if (col >= args_.n) col = args_.n - kInChunk;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int row = row_ + piece / Across * 64 + row_of(lane, i);
      bool first = true;
      epilogue_.matrices(
          [&](const auto* from) {
            if (first) ahead_[i] = *reinterpret_cast<const Chunk*>(from);
            first = false;
          },
          batch_, row < args_.m ? row : args_.m - 1, col);
    }
  }
  // Returns the loaded piece in `fragments`. `buffer` is free shared memory for the piece.
  template <typename Fragments>
  __device__ void take(uint8_t* buffer, Fragments& fragments) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      *reinterpret_cast<Chunk*>(buffer + swizzle<Bytes>(row_of(lane, i) * Bytes + lane % kChunks * 16)) = ahead_[i];
    }
    __syncwarp();
    fragments.template load<Bytes>(buffer);
    __syncwarp();
  }

 private:
  struct alignas(16) Chunk {
    uint32_t words[4];
  };
  __device__ static int row_of(int lane, int load) {
    return 32 / kChunks * load + lane / kChunks;
  }

  const Epilogue& epilogue_;
  const GemmArgs& args_;
  const int batch_, row_, col_;
  Chunk ahead_[kLoads];
};

struct NoPieces {
  template <typename... T>
  __device__ explicit NoPieces(const T&...) {}
};
template <bool Residual, typename Pieces>
struct ChoosePieces {
  using type = NoPieces;
};
template <typename Pieces>
struct ChoosePieces<true, Pieces> {
  using type = Pieces;
};

// A thread's elements of a finished piece, before they are written to shared memory: one pair of neighbours from each
// 8 x 8 matrix. Pairs of 8-bit and 16-bit elements are already rounded and packed.
template <int Matrices, typename Out, typename Value, int Bytes = sizeof(Out)>
struct MadePiece {
  Value pair[Matrices][2][2];

  __device__ void set(int j, int h, const Value (&v)[2]) { pair[j][h][0] = v[0], pair[j][h][1] = v[1]; }
};
template <int Matrices, typename Out, typename Value>
struct MadePiece<Matrices, Out, Value, 2> {
  uint32_t pair[Matrices][2];

  __device__ void set(int j, int h, const Value (&v)[2]) { pair[j][h] = pack<Out>(to_float(v[0]), to_float(v[1])); }
};
// The pair in the upper row is in the high half of a word, the pair 8 rows below it in the low half. Values are
// saturated. Pairs with h = 0 must be set first.
template <int Matrices, typename Out, typename Value>
struct MadePiece<Matrices, Out, Value, 1> {
  uint32_t pairs[Matrices];

  __device__ void set(int j, int h, const Value (&v)[2]) {
    pairs[j] = cuda::pack_saturated<Out>(v[0], v[1], h == 0 ? 0 : pairs[j]);
  }
};

// Writes a piece to shared memory, with `Bytes` bytes per row.
template <int Bytes, int Swizzle, typename Out, int Matrices, typename Value>
__device__ inline void lay_piece(const MadePiece<Matrices, Out, Value>& made, uint8_t* buffer) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int jj = 0; jj < Matrices; jj += 2) {
    if constexpr (sizeof(Out) == 1) {
#pragma unroll
      for (int j = jj; j < jj + 2 && j < Matrices; ++j) {
        const int r = lane / 4, c = 8 * j + 2 * (lane % 4);
        *reinterpret_cast<uint16_t*>(buffer + swizzle<Swizzle>(r * Bytes + c)) =
            static_cast<uint16_t>(made.pairs[j] >> 16);
        *reinterpret_cast<uint16_t*>(buffer + swizzle<Swizzle>((r + 8) * Bytes + c)) =
            static_cast<uint16_t>(made.pairs[j]);
      }
    } else if constexpr (sizeof(Out) == 2) {  // matrix i: rows from 8 * (i % 2), columns from 8 * (jj + i / 2)
      const uint32_t r = lane % 8 + (lane / 8 % 2) * 8, j = jj + lane / 16;
      const uint32_t to = shared_address(buffer) + swizzle<Swizzle>(r * Bytes + j * 16);
      if (jj + 1 < Matrices) {
        store_matrices<false>(to, made.pair[jj][0], made.pair[jj][1], made.pair[jj + 1][0], made.pair[jj + 1][1]);
      } else {
        store_matrices<false>(to, made.pair[jj][0], made.pair[jj][1]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4 && jj + i / 2 < Matrices; ++i) {
        const int r = lane / 4 + 8 * (i % 2), c = 8 * (jj + i / 2) + 2 * (lane % 4);
        Out* to = reinterpret_cast<Out*>(buffer + swizzle<Swizzle>(r * Bytes + c * sizeof(Out)));
        to[0] = convert<Out>(made.pair[jj + i / 2][i % 2][0]);
        to[1] = convert<Out>(made.pair[jj + i / 2][i % 2][1]);
      }
    }
  }
}

// Stores the sums of one part of k in row-major order. With swapped operands the accumulators contain the transpose of
// D.
template <bool Swapped, int N, typename Acc>
__device__ inline void store_partial(const Acc (&acc)[N / 2], const GemmArgs& args, Acc* partial, int row, int col) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < N / 8; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int m = row + lane / 4 + 8 * (i / 2), n = col + 8 * j + 2 * (lane % 4) + i % 2;
      if (m < args.m && n < args.n) partial[(Swapped ? n : m) * args.p_row + (Swapped ? m : n)] = acc[4 * j + i];
    }
  }
}

// A range of pieces: [first, last).
struct PieceRange {
  int32_t first, last;
};

// Keeps ptxas from moving computations that depend on accumulators ahead of this point. Otherwise ptxas would start on
// a later piece before the current piece is stored, and TMA would be idle. This function is a loop: ptxas moves nothing
// into a loop, and it does not know that this loop runs only once. `number` must be above 0 and different at each call
// site.
template <int Blocks, int Sums, typename Acc>
__device__ inline void keep_behind(Acc (&acc)[Blocks][Sums], const GemmArgs& args, int number) {
#pragma unroll 1
  do {
    __syncwarp();
#pragma unroll
    for (int block = 0; block < Blocks; ++block) {
#pragma unroll
      for (int i = 0; i < Sums; ++i) fence_operand(acc[block][i]);
    }
  } while (args.zero == number);
}

// Stores the pieces [pieces.first, pieces.last) by TMA, each through one of the warp's staging buffers. `row` is the
// first of the warp's 16 rows in the first block of 64 rows; `col` is the first column of D. The box of the tensor map
// is a piece as gemm_piece() defines it: {bytes / sizeof(Out), 16, 1}. With Brought::kBrings, the staging buffer of a
// piece already holds the same piece of the first matrix that the epilogue reads (`brought`).
template <int Blocks, int N, typename Out, bool Inside, typename Acc, typename Epilogue, typename Brought>
__device__ inline void store_rows(Acc (&acc)[Blocks][N / 2], const Epilogue& epilogue, const GemmArgs& args,
                                  const TensorMap& map, uint8_t* staging, int batch, int row, int col,
                                  const PieceRange& pieces, Brought& brought) {
  constexpr int kWidth = N / cuda::kColumnsOfPair<Epilogue>;  // in D
  constexpr GemmPiece kPiece = gemm_piece(kWidth, sizeof(Out));
  constexpr int kSwizzle = kPiece.swizzled ? kPiece.bytes : 16;
  constexpr int kColumns = kPiece.bytes / sizeof(Out), kMatrices = kColumns / 8;
  constexpr int kAcross = kWidth / kColumns, kPieces = Blocks * kAcross;
  using Value = epilogue_value_t<Acc, Out>;
  using Made = MadePiece<kMatrices, Out, Value>;
  const int lane = threadIdx.x % 32;
  constexpr bool kInSteps = sizeof(Out) == 2 && is_same<Acc, float> && InSteps<Epilogue>::value;
  constexpr bool kResidual = kPiece.swizzled && (sizeof(Out) == 1 || (sizeof(Out) == 2 && kPiece.bytes == 128)) &&
                             ReturnsOnly<Epilogue>::value && ResidualBytes<Epilogue>::value == sizeof(Out);
  constexpr bool kBrought = Brought::kBrings, kTaken = kResidual && !kBrought;
  static_assert(!kBrought || kResidual);
  constexpr int kElement = sizeof(Out) == 1 ? 1 : 2;
  [[maybe_unused]] ResidualFragments<kResidual ? kMatrices : 2, kElement> residual;
  using Pieces = ResidualPieces<kPiece.bytes, kElement, kAcross, Epilogue>;
  typename ChoosePieces<kTaken, Pieces>::type taken(epilogue, args, batch, row, col, pieces.first);
  // Applies the epilogue to the whole piece before any instruction that orders memory. So the epilogue's loads are in
  // flight together, and rows share the loads of column vectors.
  const auto make = [&](int piece, Made& made) {
#pragma unroll
    for (int j = 0; j < kMatrices; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int r = row + piece / kAcross * 64 + lane / 4 + 8 * h;
        const int c = col + piece % kAcross * kColumns + 8 * j + 2 * (lane % 4);
        Value v[2];
        take_pair<Inside>(v, acc[piece / kAcross], piece % kAcross * kMatrices + j, h, epilogue, args, batch, r, c);
        const auto apply = [&](const auto& function) {
          if constexpr (kResidual) {
            apply_pair<false, Inside>(v, function, args, batch, r, c, residual.pair(j, h));
          } else {
            apply_pair<false, Inside>(v, function, args, batch, r, c);
          }
        };
        if constexpr (kInSteps) {
          apply(InnerStep<Epilogue>{epilogue});
          made.pair[j][h] = Epilogue::template pack<Out>(v[0], v[1]);
        } else {
          apply(epilogue);
          made.set(j, h, v);
        }
      }
    }
  };
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    if (piece < pieces.first || piece >= pieces.last) continue;
    uint8_t* buffer = staging + piece % kPiece.buffers * kPiece.buffer_bytes();
    if constexpr (kBrought) buffer = brought.buffer(piece);
    const auto wait_for_buffer = [&] {
      // If the previous tile had an odd number of pieces, the first piece uses the same buffer as the last piece of
      // that tile.
      const bool in_turn = piece > pieces.first || (kPieces - pieces.first) % kPiece.buffers == 0;
      if (lane == 0 && in_turn) wait_stores_read<kPiece.buffers - 1>();
      if (lane == 0 && !in_turn) wait_stores_read<0>();
      __syncwarp();
    };
    if (piece > 0) keep_behind(acc, args, piece);
    if constexpr (kTaken) {
      wait_for_buffer();
      taken.take(buffer, residual);
      if (piece + 1 < kPieces) taken.fetch(piece + 1);
    }
    if constexpr (kBrought) brought.take(piece, residual);
    Made made;
    make(piece, made);
    if constexpr (kBrought) {
      __syncwarp();
    } else if constexpr (!kTaken) {
      wait_for_buffer();
    }
    lay_piece<kPiece.bytes, kSwizzle>(made, buffer);
    fence_async_shared();
    __syncwarp();
    if (lane == 0) {
      store_box(map, buffer, col + piece % kAcross * kColumns, row + piece / kAcross * 64, batch);
      commit_stores();
      if constexpr (kBrought) brought.stored(piece);
    }
  }
}

// Does the same as store_rows() for swapped operands: the warp's 16 rows are 16 columns of D. The box of the map is
// {16, kRows, 1}, swizzled over 32 bytes.
template <int N, typename Out, typename Acc, typename Epilogue>
__device__ inline void store_columns(const Acc (&acc)[N / 2], const Epilogue& epilogue, const GemmArgs& args,
                                     const TensorMap& map, uint8_t* staging, uint32_t& turn, int batch, int row,
                                     int col) {
  static_assert(sizeof(Out) == 2);
  constexpr int kRows = N % 64 == 0 ? 64 : N % 32 == 0 ? 32 : 16;
  using Value = epilogue_value_t<Acc, Out>;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int piece = 0; piece < N / kRows; ++piece, turn ^= 1) {
    uint8_t* buffer = staging + turn * kGemmStagingBytes;
    if (lane == 0) wait_stores_read<1>();
    __syncwarp();
#pragma unroll
    for (int jj = 0; jj < kRows / 8; jj += 2) {
      uint32_t packed[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int j = piece * (kRows / 8) + jj + i / 2, h = i % 2;
        Value v[2] = {static_cast<Value>(acc[4 * j + 2 * h]), static_cast<Value>(acc[4 * j + 2 * h + 1])};
        apply_pair<true>(v, epilogue, args, batch, row + lane / 4 + 8 * h, col + 8 * j + 2 * (lane % 4));
        packed[i] = pack<Out>(to_float(v[0]), to_float(v[1]));
      }
      __syncwarp();
      const uint32_t r = 8 * (jj + lane / 16) + lane % 8;
      store_matrices<true>(shared_address(buffer) + swizzle<32>(r * 32 + (lane / 8 % 2) * 16), packed[0], packed[1],
                           packed[2], packed[3]);
    }
    fence_async_shared();
    __syncwarp();
    if (lane == 0) {
      store_box(map, buffer, row, col + piece * kRows, batch);
      commit_stores();
    }
  }
}

}  // namespace heddle::tile::sm90
