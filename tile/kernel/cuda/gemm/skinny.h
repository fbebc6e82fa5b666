// Computes D = epilogue(A B) if D has few rows (or few columns). One operand, `Few`, then has few rows. The other
// operand, `Wide`, has many rows, called wide rows. Each element of `Wide` is loaded once from global memory directly
// into registers, and is multiplied by all rows of `Few`. The kernel is memory-bound. The k dimension is divided among
// lanes or warps and, with GemmStore::kPartial, among blocks. Sums are always added in the same order. `Wide` may also
// be a PackedRowsMatrix, whose integers are widened in registers.
//
//   struct Config {
//     using In = float;                     // type of converted operands and sums: float, double, int32_t, int64_t
//     static constexpr int kFew = 4;        // >= the rows of `Few`; a power of two, at most 16
//     static constexpr int kWarps = 8;
//     static constexpr int kRows = 4;       // wide rows per warp at a time, if memory is contiguous along k
//     static constexpr bool kSwapped = false;   // true: the wide rows are rows of D; false: columns of D
//     static constexpr auto kStore = tile::GemmStore::kEpilogue;   // or kPartial
//   };
//
// Operands, the epilogue and GemmArgs are those of tile/kernel/cuda/gemm/sm80.h; operands must have a view. In
// GemmArgs, m is the number of rows of `Few`, n is the number of wide rows, and tiles_m is 1. SkinnyTraits gives the
// size of a tile along n and k.
#pragma once

#include "tile/arch/sm80/stream.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"
#include "tile/kernel/cuda/operand/load.h"
#include "tile/kernel/cuda/operand/packed.h"

namespace heddle::tile::cuda {

// Whether a wide operand is loaded along k or along its rows, and how many elements a load has.
template <typename Wide, typename In>
struct WideTraits {
  using Chain = typename OperandTraits<Wide, In>::Chain;
  static constexpr int kMost = 16 / sizeof(typename Wide::Element);
  static constexpr int kWidthRow = known_vector_length<0, Chain>(kMost), kWidthK = known_vector_length<1, Chain>(kMost);
  static constexpr bool kAlongK = kWidthK >= kWidthRow;
  // Elements per load. Along rows, a thread sums up those of its load, and then stores those of one row of the block.
  static constexpr int kWidth = kAlongK ? kWidthK : kWidthRow < kSkinnyRows ? kWidthRow : kSkinnyRows;
};
template <IsPackedRows Wide, typename In>
struct WideTraits<Wide, In> {
  static constexpr bool kAlongK = true;
  static constexpr int kWidth = packed_per_word(Wide::kBits);
};

template <typename Config, typename Few, typename Wide>
struct SkinnyTraits {
  using In = typename Config::In;
  static constexpr bool kAlongK = WideTraits<Wide, In>::kAlongK;
  static constexpr int kWidth = WideTraits<Wide, In>::kWidth;
  static constexpr int kThreads = 32 * Config::kWarps, kUnrolled = 8;
  // If memory is contiguous along k, a warp computes kRows wide rows, and every lane does one load per wide row in a
  // tile of k. If memory is contiguous along rows, a lane loads adjacent wide rows, and a warp processes every
  // kWarps-th k.
  static constexpr int kTileN = kAlongK ? Config::kWarps * Config::kRows : 32 * kWidth;
  static constexpr int kTileK = kAlongK ? 32 * kWidth : Config::kWarps * kUnrolled;
  static constexpr int kSharedBytes = kAlongK ? 0 : Config::kWarps * kTileN * static_cast<int>(sizeof(In));
};

// Reads elements of one operand and converts them to the type in which they are multiplied.
template <typename Operand, typename In>
class ElementReader {
 public:
  using Traits = OperandTraits<Operand, In>;
  using Chain = typename Traits::Chain;
  using Element = typename Operand::Element;

  __device__ ElementReader(const Operand& operand, int batch)
      : operand_(operand), view_(operand.view(batch)), batch_(batch) {}
  __device__ Coordinate<Chain> at(int row, int k) const { return view_.at(row, k); }

  // Reads element (row, k) and the W - 1 elements that follow along k (along rows if `Rows`). Elements out of range
  // are 0.
  template <int W, bool Rows>
  __device__ void read(In (&v)[W], const Coordinate<Chain>& at) const {
    constexpr int kKnown = known_vector_length < Rows ? 0 : 1, Chain > (W);
    constexpr bool kWhole = kKnown >= W && W * sizeof(Element) <= 16;
    if constexpr (kWhole || W == 1) {
      Piece<Element, W> piece{};
      const bool valid = at.is_valid();
      const auto* from = reinterpret_cast<const Piece<Element, W>*>(view_.data + at.offset());
      if constexpr (is_stream<Operand> && sizeof(piece) == 16) {
        if (valid) piece = sm80::load_stream(from);
      } else {
        if (valid) piece = *from;
      }
      convert_piece(v, piece, valid, at.template index<0>(), at.template index<1>());
    } else {
      constexpr int kPart = kKnown * sizeof(Element) >= 16 ? 16 / sizeof(Element) : 1;
      Coordinate<Chain> part = at;
#pragma unroll
      for (int i = 0; i < W; i += kPart) {
        In x[kPart];
        read<kPart, Rows>(x, part);
#pragma unroll
        for (int j = 0; j < kPart; ++j) v[i + j] = x[j];
        part.move(fixed < Rows ? kPart : 0 > (), fixed < Rows ? 0 : kPart > ());
      }
    }
  }

 private:
  template <int W>
  __device__ void convert_piece(In (&v)[W], const Piece<Element, W>& piece, bool valid, int row, int k) const {
    using Value = between_t<Element, In>;
    Value value[W];
#pragma unroll
    for (int i = 0; i < W; ++i) value[i] = convert<Value>(piece.x[i]);
    if constexpr (HasPrologue<Operand>) {
      if (valid) operand_.apply(value, batch_, row, k);
    }
#pragma unroll
    for (int i = 0; i < W; ++i) v[i] = convert<In>(value[i]);
  }

  const Operand& operand_;
  TensorView<const Element, Chain> view_;
  int batch_;
};

// Reads elements of the wide operand along k.
template <typename Wide, typename In>
class WideReader {
 public:
  __device__ WideReader(const Wide& wide, int batch) : elements_(wide, batch) {}
  template <int W>
  __device__ void read(In (&v)[W], int row, int k) const {
    elements_.template read<W, false>(v, elements_.at(row, k));
  }

 private:
  ElementReader<Wide, In> elements_;
};
template <IsPackedRows Wide>
class WideReader<Wide, float> : public PackedRowsReader<Wide> {
 public:
  __device__ WideReader(const Wide& wide, int) : PackedRowsReader<Wide>(wide.args) {}
};

// Returns the sum over the lanes of a warp, in every lane. Each lane adds in the same order.
template <typename T>
__device__ inline T sum_of_lanes(T x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}

// Passes the sums v[0..n) to the epilogue or, with GemmStore::kPartial, stores them as partial sums. The sums are
// adjacent elements of a row of D.
template <typename Config, typename T, int W, typename Epilogue>
__device__ inline void finish_skinny(const GemmArgs& args, const GemmUnit& unit, const Epilogue& epilogue, T (&v)[W],
                                     int row, int col, int n) {
  if constexpr (Config::kStore == GemmStore::kPartial) {
    T* to = static_cast<T*>(args.partial) + unit.batch * args.p_batch + unit.split * args.p_split;
    store_row<1>(to + row * args.p_row + col, v, n);
  } else {
    epilogue(v, unit.batch, row, col, n);
  }
}

// Returns the index of the wide row from which a warp computes its sum r. `first` is the warp's first column of D
// (first row if kSwapped). If the epilogue gates, a column of D has a pair of sums. The first sums of all pairs then
// precede the second sums.
template <typename Epilogue, int Rows>
__device__ inline int wide_row(int first, int r) {
  if constexpr (Gates<Epilogue>::value) {
    return gemm_gate_column(first + r % (Rows / 2)) + (r < Rows / 2 ? 0 : kGemmGateColumns);
  } else {
    return first + r;
  }
}

// Passes a warp's sums for row m of D to the epilogue. `first` is the warp's first column of D.
template <typename Config, typename T, int Rows, typename Epilogue>
__device__ inline void finish_row(const GemmArgs& args, const GemmUnit& unit, const Epilogue& epilogue, T (&sums)[Rows],
                                  int m, int first) {
  constexpr int W = Rows / kColumnsOfPair<Epilogue>;
  const int n = args.n - first < W ? args.n - first : W;
  if (n <= 0) return;
  if constexpr (W < Rows) {
    T v[W], w[W];
#pragma unroll
    for (int i = 0; i < W; ++i) v[i] = sums[i], w[i] = sums[W + i];
    epilogue.gate(v, w, unit.batch, m, first, n);
    finish_skinny<Config>(args, unit, epilogue, v, m, first, n);
  } else {
    finish_skinny<Config>(args, unit, epilogue, sums, m, first, n);
  }
}

// Used if memory is contiguous along k. Consecutive lanes load consecutive elements along k. A warp computes kRows rows
// of the operand `wide` at a time.
template <typename Config, typename Few, typename Wide, typename Epilogue>
__device__ inline void few_along_k(const GemmArgs& args, const GemmUnit& unit, const Few& few, const Wide& wide,
                                   const Epilogue& epilogue) {
  using Traits = SkinnyTraits<Config, Few, Wide>;
  using In = typename Config::In;
  constexpr int W = Traits::kWidth, kFew = Config::kFew, kRows = Config::kRows;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kPair = kColumnsOfPair<Epilogue>;
  static_assert(kPair == 1 || (!Config::kSwapped && kRows % 2 == 0));
  const int first = (unit.n + static_cast<int>(threadIdx.x) / 32 * kRows) / kPair;
  const ElementReader<Few, In> a(few, unit.batch);
  const WideReader<Wide, In> b(wide, unit.batch);

  In sums[kFew][kRows] = {};
  // Unrolling keeps loads in flight: full bandwidth needs 64 KiB. Every converted element takes a register, so loads of
  // sixteen elements are unrolled half as often as those of eight.
  constexpr int kUnrolled = (kFew <= 2 ? 4 : 2) / (W > 8 ? 2 : 1);
#pragma unroll kUnrolled
  for (int32_t tile = unit.k.first; tile < unit.k.last; ++tile) {
    const int k = tile * Traits::kTileK + lane * W;
    In x[kRows][W];
#pragma unroll
    for (int r = 0; r < kRows; ++r) b.read(x[r], wide_row<Epilogue, kRows>(first, r), k);
#pragma unroll
    for (int m = 0; m < kFew; ++m) {
      In y[W];
      a.template read<W, false>(y, a.at(m, k));
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < W; ++i) sums[m][r] += x[r][i] * y[i];
      }
    }
  }

#pragma unroll
  for (int m = 0; m < kFew; ++m) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) sums[m][r] = sum_of_lanes(sums[m][r]);
  }
  if constexpr (Config::kSwapped) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      In v[kFew];
#pragma unroll
      for (int m = 0; m < kFew; ++m) v[m] = sums[m][r];
      if (lane == r && first + r < args.n) finish_skinny<Config>(args, unit, epilogue, v, first + r, 0, args.m);
    }
  } else {
#pragma unroll
    for (int m = 0; m < kFew; ++m) {
      if (lane == m && m < args.m) finish_row<Config>(args, unit, epilogue, sums[m], m, first);
    }
  }
}

// Used if memory is contiguous along rows. Consecutive lanes load consecutive rows of the operand `wide`. Warps process
// different k in round-robin order.
template <typename Config, typename Few, typename Wide, typename Epilogue>
__device__ inline void few_along_rows(const GemmArgs& args, const GemmUnit& unit, const Few& few, const Wide& wide,
                                      const Epilogue& epilogue) {
  using Traits = SkinnyTraits<Config, Few, Wide>;
  using In = typename Config::In;
  constexpr int W = Traits::kWidth, kFew = Config::kFew, kWarps = Config::kWarps;
  extern __shared__ __align__(16) uint8_t raw_shared[];
  In* shared = reinterpret_cast<In*>(raw_shared);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const ElementReader<Few, In> a(few, unit.batch);
  const ElementReader<Wide, In> b(wide, unit.batch);

  In sums[kFew][W] = {};
  auto at_b = b.at(unit.n + lane * W, unit.k.first * Traits::kTileK + warp);
#pragma unroll 4
  for (int k = unit.k.first * Traits::kTileK + warp; k < unit.k.last * Traits::kTileK; k += kWarps) {
    In x[W];
    b.template read<W, true>(x, at_b);
    at_b.move(fixed<0>(), fixed<kWarps>());
#pragma unroll
    for (int m = 0; m < kFew; ++m) {
      In y[1];
      a.template read<1, false>(y, a.at(m, k));
#pragma unroll
      for (int i = 0; i < W; ++i) sums[m][i] += x[i] * y[0];
    }
  }

  // Adds the sums of all warps in the order of the warps. Each thread then has the products of one wide row, or of a
  // pair of wide rows, with all rows of `Few`.
  constexpr int kPair = kColumnsOfPair<Epilogue>;
  static_assert(kPair == 1 || !Config::kSwapped);
  In total[kFew], other[kFew];
  const int mine = static_cast<int>(threadIdx.x);
  const int at = kPair == 2 ? gemm_gate_column(mine) : mine;
#pragma unroll
  for (int m = 0; m < kFew; ++m) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < W; ++i) shared[warp * Traits::kTileN + lane * W + i] = sums[m][i];
    __syncthreads();
    total[m] = other[m] = 0;
    if (mine < Traits::kTileN / kPair) {
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        total[m] += shared[w * Traits::kTileN + at];
        if constexpr (kPair == 2) other[m] += shared[w * Traits::kTileN + at + kGemmGateColumns];
      }
    }
  }
  const int column = unit.n / kPair + mine;
  if (mine >= Traits::kTileN / kPair || column >= args.n) return;
  if constexpr (Config::kSwapped) {
    finish_skinny<Config>(args, unit, epilogue, total, column, 0, args.m);
  } else {
#pragma unroll
    for (int m = 0; m < kFew; ++m) {
      In v[1] = {total[m]};
      if (m >= args.m) continue;
      if constexpr (kPair == 2) {
        const In w[1] = {other[m]};
        epilogue.gate(v, w, unit.batch, m, column, 1);
      }
      finish_skinny<Config>(args, unit, epilogue, v, m, column, 1);
    }
  }
}

// Computes tile `number`, with SkinnyTraits<...>::kThreads threads and kSharedBytes bytes of dynamic shared memory.
template <typename Config, typename Few, typename Wide, typename Epilogue>
__device__ inline void gemm_skinny_block(const GemmArgs& args, const Few& few, const Wide& wide,
                                         const Epilogue& epilogue, uint32_t number) {
  using Traits = SkinnyTraits<Config, Few, Wide>;
  static_assert(Traits::kTileN <= Traits::kThreads || Traits::kAlongK);
  const GemmUnit unit = gemm_unit(args, static_cast<int32_t>(number), Config::kFew, Traits::kTileN);
  if constexpr (Traits::kAlongK) {
    few_along_k<Config>(args, unit, few, wide, epilogue);
  } else {
    few_along_rows<Config>(args, unit, few, wide, epilogue);
  }
}

// Requests the rows of `wide` that tile `number` reads from memory, so that the L2 has them when gemm_skinny_block()
// loads them. Reads nothing. Memory must be contiguous along k.
template <typename Config, typename Few, typename Wide>
__device__ inline void gemm_skinny_ahead(const GemmArgs& args, const Wide& wide, uint32_t number) {
  using Traits = SkinnyTraits<Config, Few, Wide>;
  constexpr int kLine = 128 / static_cast<int>(sizeof(typename Wide::Element));
  static_assert(Traits::kAlongK);
  const GemmUnit unit = gemm_unit(args, static_cast<int32_t>(number), Config::kFew, Traits::kTileN);
  const auto view = wide.view(unit.batch);
  const int lane = static_cast<int>(threadIdx.x) % 32,
            first = unit.n + static_cast<int>(threadIdx.x) / 32 * Config::kRows;
#pragma unroll 1
  for (int k = lane * kLine; k < unit.k.last * Traits::kTileK; k += 32 * kLine) {
#pragma unroll
    for (int r = 0; r < Config::kRows; ++r) {
      if (const auto at = view.at(first + r, k); at.is_valid()) sm80::prefetch(view.data + at.offset());
    }
  }
}

// The kernel. A block computes one tile.
template <typename Config, typename Few, typename Wide, typename Epilogue>
__device__ inline void gemm_skinny(const GemmArgs& args, const Few& few, const Wide& wide, const Epilogue& epilogue) {
  gemm_skinny_block<Config>(args, few, wide, epilogue, blockIdx.x);
}

}  // namespace heddle::tile::cuda
