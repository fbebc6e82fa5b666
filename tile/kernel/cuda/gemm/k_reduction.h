// D = epilogue(A B) if D has few elements and k is long. Each thread has a sum for every element of a tile of D, and
// processes every kThreads-th piece of k. Both operands are thus read once, directly from memory into registers. The
// sums of lanes, of warps and, with GemmStore::kPartial, of blocks are added in the same order in every run.
//
//   struct Config {
//     using In = float;                     // float, double, int32_t, int64_t: type of converted operands and sums
//     static constexpr int kTileM = 3, kTileN = 3;
//     static constexpr int kWidth = 8;      // contiguous elements of k that a thread loads: a piece; a power of two
//     static constexpr int kChunks = 2;     // pieces that a thread has in flight at a time
//     static constexpr int kWarps = 4;
//     static constexpr bool kPackedA = false, kPackedB = false;    // OperandView::packed(), and the tile has all rows
//     static constexpr auto kStore = tile::GemmStore::kEpilogue;   // or kPartial
//   };
//
// The operands, the epilogue and GemmArgs are those of tile/kernel/cuda/gemm/sm80.h, but operands must have a view.
#pragma once

#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"
#include "tile/kernel/cuda/gemm/simt.h"
#include "tile/kernel/cuda/operand/load.h"
#include "tile/kernel/cuda/row.h"

namespace heddle::tile::cuda {

template <typename Config>
struct KReductionTraits {
  using In = typename Config::In;
  static constexpr int kSums = Config::kTileM * Config::kTileN, kThreads = 32 * Config::kWarps;
  static constexpr int kTileK = kThreads * Config::kWidth;
  static constexpr int kSharedBytes = Config::kWarps * kSums * static_cast<int>(sizeof(In));
  static_assert(kSums <= kThreads);
};

// Rows x Width elements of an operand: Width neighbouring elements along k of each row. They are loaded in pieces as
// wide as the memory layout allows.
template <typename Operand, int Rows, int Width, bool Packed>
class KSlice {
  using Element = typename Operand::Element;
  using Chain = typename OperandTraits<Operand, Element>::Chain;
  static constexpr int kMost = 16 / sizeof(Element);
  static constexpr int kWidthK = common_divisor(known_vector_length<1, Chain>(kMost), Width);
  static constexpr int kWidthRow = common_divisor(known_vector_length<0, Chain>(kMost), Rows);
  static constexpr bool kAlongK = kWidthK >= kWidthRow;
  static constexpr int W = Packed ? kMost : kAlongK ? kWidthK : kWidthRow;
  static constexpr int kPieces = Rows * Width / W;
  static_assert(Rows * Width % W == 0);
  using Loaded = PieceWords<Element, W>;

 public:
  // Loads the elements from (row, k) on. Elements outside the operand become zero; if not `wanted`, all become zero. If
  // Packed, either all elements are inside the operand or none.
  __device__ void load(const TensorView<const Element, Chain>& view, int row, int k, bool wanted) {
    if constexpr (Packed) {
      load_packed(view, k, wanted);
    } else {
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        const int r = kAlongK ? i / (Width / W) : i % (Rows / W) * W;
        const int inside = kAlongK ? i % (Width / W) * W : i / (Rows / W);
        const auto at = view.at(row + r, k + inside);
        piece_[i] = Loaded{};
        if (wanted && at.is_valid()) piece_[i] = *reinterpret_cast<const Loaded*>(view.data + at.offset());
      }
    }
  }
  template <typename In>
  __device__ In value(int row, int k) const {
    const int at = !Packed && kAlongK ? row * Width + k : k * Rows + row;
    return convert<In>(convert<between_t<Element, In>>(piece_[at / W].element(at % W)));
  }

 private:
  // In memory, the Rows elements of each k directly follow those of k - 1, so a thread reads a contiguous range.
  __device__ void load_packed(const TensorView<const Element, Chain>& view, int k, bool wanted) {
    const bool inside = wanted && k < static_cast<int>(view.chain.template length<1>());
    const auto* from = reinterpret_cast<const Loaded*>(view.data + static_cast<int64_t>(k) * Rows);
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      piece_[i] = Loaded{};
      if (inside) piece_[i] = from[i];
    }
  }

  Loaded piece_[kPieces];
};

template <typename In, int M, int N, int Width, typename SliceA, typename SliceB>
__device__ inline void add_products(In (&sums)[M * N], const SliceA& a, const SliceB& b) {
#pragma unroll
  for (int k = 0; k < Width; ++k) {
    In y[N];
#pragma unroll
    for (int n = 0; n < N; ++n) y[n] = b.template value<In>(n, k);
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const In x = a.template value<In>(m, k);
#pragma unroll
      for (int n = 0; n < N; ++n) multiply_add(sums[m * N + n], x, y[n]);
    }
  }
}

// Adds each of the Count sums over all lanes of a warp. Each step halves both the number of lanes that share a sum and
// the number of sums per lane, so that about Count exchanges suffice. Calls put(i, sum) once for each sum, in one lane.
template <int Distance, int Count, typename T, int Size, typename Put>
__device__ inline void scatter_sums(T (&v)[Size], int first, int left, const Put& put) {
  if constexpr (Distance == 0) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (i < left) put(first + i, v[i]);
    }
  } else {
    constexpr int kHalf = (Count + 1) / 2;
    const bool upper = (threadIdx.x & Distance) != 0;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const T other = kHalf + i < Count ? v[kHalf + i < Count ? kHalf + i : 0] : T{};
      const T kept = upper && Count > 1 ? other : v[i], sent = upper || Count == 1 ? v[i] : other;
      v[i] = kept + __shfl_xor_sync(0xffffffffu, sent, Distance);
    }
    const int below = left < kHalf ? left : kHalf;
    scatter_sums<Distance / 2, kHalf>(v, upper ? first + kHalf : first, upper ? left - below : below, put);
  }
}

// The kernel. Launch it with KReductionTraits<Config>::kThreads threads and kSharedBytes of dynamic shared memory.
template <typename Config, typename A, typename B, typename Epilogue>
__device__ inline void gemm_k_reduction(const GemmArgs& args, const A& operand_a, const B& operand_b,
                                        const Epilogue& epilogue) {
  using Traits = KReductionTraits<Config>;
  using In = typename Config::In;
  constexpr int kM = Config::kTileM, kN = Config::kTileN, kWidth = Config::kWidth, kChunks = Config::kChunks;
  extern __shared__ __align__(16) uint8_t raw_shared[];
  const int thread = static_cast<int>(threadIdx.x);
  const GemmUnit unit = gemm_unit(args, static_cast<int32_t>(blockIdx.x), kM, kN);
  const auto a = operand_a.view(unit.batch);
  const auto b = operand_b.view(unit.batch);

  In sums[Traits::kSums] = {};
  // Packed loads need whole pieces. The elements of k after the last whole piece are therefore loaded one by one at the
  // end. Other loads check every element.
  constexpr bool kPacked = Config::kPackedA || Config::kPackedB;
  const int whole = kPacked ? args.k / kWidth * kWidth : args.k;
#pragma unroll 1
  for (int32_t tile = unit.k.first; tile < unit.k.last; tile += kChunks) {
    KSlice<A, kM, kWidth, Config::kPackedA> of_a[kChunks];
    KSlice<B, kN, kWidth, Config::kPackedB> of_b[kChunks];
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int at = (tile + c) * Traits::kTileK + thread * kWidth;
      const bool wanted = tile + c < unit.k.last && at < whole;
      of_a[c].load(a, unit.m, at, wanted);
      of_b[c].load(b, unit.n, at, wanted);
    }
#pragma unroll
    for (int c = 0; c < kChunks; ++c) add_products<In, kM, kN, kWidth>(sums, of_a[c], of_b[c]);
  }
  if constexpr (kPacked) {
    if (unit.k.last == args.k_tiles && whole + thread < args.k) {
      KSlice<A, kM, 1, false> of_a;
      KSlice<B, kN, 1, false> of_b;
      of_a.load(a, unit.m, whole + thread, true);
      of_b.load(b, unit.n, whole + thread, true);
      add_products<In, kM, kN, 1>(sums, of_a, of_b);
    }
  }

  // Adds the sums over lanes, and then over warps with one thread per element of the tile.
  In* shared = reinterpret_cast<In*>(raw_shared);
  In* of_warp = shared + thread / 32 * Traits::kSums;
  scatter_sums<16, Traits::kSums>(sums, 0, Traits::kSums, [&](int i, In sum) { of_warp[i] = sum; });
  __syncthreads();
  const int row = unit.m + thread / kN, column = unit.n + thread % kN;
  if (thread >= Traits::kSums || row >= args.m || column >= args.n) return;
  In total[1] = {};
#pragma unroll
  for (int w = 0; w < Config::kWarps; ++w) total[0] += shared[w * Traits::kSums + thread];
  if constexpr (Config::kStore == GemmStore::kPartial) {
    In* to = static_cast<In*>(args.partial) + unit.batch * args.p_batch + unit.split * args.p_split;
    to[row * args.p_row + column] = total[0];
  } else {
    epilogue(total, unit.batch, row, column, 1);
  }
}

}  // namespace heddle::tile::cuda
