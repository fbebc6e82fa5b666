// Products of tiles: c + a b, where a has M x K, b has K x N and c has M x N elements. Tensor cores (mma.sync) multiply
// the types that they support; for other types, each thread multiplies. Operands pass through shared memory.
#pragma once

#include "tile/arch/sm80/cp_async.h"
#include "tile/block/operand.h"

namespace heddle::tile::block {

// The layout of the sums. Each of WarpsM x WarpsN warps holds kBlocksM x kBlocksN blocks of 16 x 8 elements; any
// further warps hold copies.
template <int M, int N, int WarpsM, int WarpsN, int Warps = WarpsM* WarpsN>
struct mma_layout {
  // Fragments of B are loaded in pairs of blocks, so one more block must be readable.
  static constexpr int kCoveredM = 16 * WarpsM * ((M + 16 * WarpsM - 1) / (16 * WarpsM));
  static constexpr int kCoveredN = 8 * WarpsN * ((N + 8 * WarpsN - 1) / (8 * WarpsN)) + 8;
  static constexpr int kBlocksM = (M + 16 * WarpsM - 1) / (16 * WarpsM), kBlocksN = (N + 8 * WarpsN - 1) / (8 * WarpsN);
  using type = Layout<dims<M, N>, reg<2, 1, 1>, lane<4, 1, 2>, lane<8, 0, 1>, reg<2, 0, 8>, reg<kBlocksN, 1, 8>,
                      reg<kBlocksM, 0, 16>, warp<WarpsM, 0, 16 * kBlocksM>, warp<WarpsN, 1, 8 * kBlocksN>,
                      warp<Warps / (WarpsM * WarpsN)>>;
};
template <int M, int N, int WarpsM, int WarpsN, int Warps = WarpsM* WarpsN>
using mma_layout_t = typename mma_layout<M, N, WarpsM, WarpsN, Warps>::type;

// Ways to multiply elements of type T. `In` is their type in shared memory. `pieces` is the number of `In` values whose
// sum is one element.
struct by_f16 {
  using In = half;
  using Sum = float;
  static constexpr int pieces = 1;
};
struct by_bf16 {
  using In = bfloat;
  using Sum = float;
  static constexpr int pieces = 1;
};
struct by_tf32 {
  using In = cuda::tf32;
  using Sum = float;
  static constexpr int pieces = 1;
};
// Computes each product of f32 elements as the sum of three tf32 products. The relative error is at most 2^-21.
struct by_tf32x3 {
  using In = cuda::tf32;
  using Sum = float;
  static constexpr int pieces = 2;
};
template <typename T>
struct by_int8 {
  using In = T;
  using Sum = int32_t;
  static constexpr int pieces = 1;
};
// Ordinary arithmetic by each thread, in T.
template <typename T>
struct by_thread {
  using In = T;
  using Sum = T;
  static constexpr int pieces = 1;
};

// The shape of the sums for by_thread. Threads read only elements inside M x N, so operands need no padding.
template <int M, int N>
struct by_plain {
  static constexpr int kCoveredM = M, kCoveredN = N;
};

namespace detail {

template <typename A>
inline constexpr bool is_by_thread = false;
template <typename T>
inline constexpr bool is_by_thread<by_thread<T>> = true;

// Splits x into By::pieces values whose sum is x, and returns the value with index `piece`.
template <typename By, typename T>
TILE_INLINE typename By::In piece_of(T x, int piece) {
  using In = typename By::In;
  if constexpr (is_same<In, cuda::tf32>) {
    const float f = cast<float>(x), high = cuda::from_float<cuda::tf32>(f).value;
    if (piece == 0) return {high};
    // For an infinity, the second piece is zero, not NaN.
    const float rest = f - high;
    return cuda::from_float<cuda::tf32>(rest == rest ? rest : 0.f);
  } else {
    return cast<In>(x);
  }
}

// The layout of a dot's operands in shared memory.
template <typename By, typename Sums, typename La, typename Lb>
struct Operands {
  static constexpr int M = La::size(La::kRank - 2), K = La::size(La::kRank - 1), N = Lb::size(La::kRank - 1);
  using In = typename By::In;
  static constexpr int kRank = La::kRank;
  using AxesA = Axes<kRank - 2, kRank - 1>;
  using AxesB = Axes<kRank - 1, kRank - 2>;
  static constexpr bool kEither = sizeof(In) == 2;
  using A = Operand<In, M, K, !kEither || La::run(AxesA::row) <= La::run(AxesA::depth), Sums::kCoveredM>;
  using B = Operand<In, N, K, !kEither || Lb::run(AxesB::row) < Lb::run(AxesB::depth), Sums::kCoveredN>;
  static constexpr int kBytes = By::pieces * (A::kBytes + B::kBytes);
};

// Rounds 32-bit words to the nearest tf32. Needed for operands that were copied unchanged, since mma.sync truncates.
template <typename In>
TILE_INLINE void round_words([[maybe_unused]] uint32_t (&r)[4]) {
  if constexpr (is_same<In, cuda::tf32>) {
#pragma unroll
    for (int i = 0; i < 4; ++i) r[i] = __float_as_uint(cuda::from_float<cuda::tf32>(__uint_as_float(r[i])).value);
  }
}

// Adds a product to registers [first, first + count) of the sums. Each thread computes with ordinary arithmetic, so the
// sums may have any layout.
template <typename L, typename A, typename B, typename Acc>
TILE_INLINE void multiply_by_thread(const typename A::element* a, const typename B::element* b, Acc* sums, int first,
                                    int count) {
  constexpr int kRow = L::kRank - 2, kColumn = L::kRank - 1;
  const Place here = L::here();
#pragma unroll 1
  for (int k = 0; k < A::kDepth; ++k) {
    const auto* from_a = a + A::at(here.at[kRow], k);
    const auto* from_b = b + B::at(here.at[kColumn], k);
#pragma unroll
    for (int r = first; r < first + count; ++r) {
      if (!L::inside(here, r, kRow) || !L::inside(here, r, kColumn)) continue;
      sums[r] = block::fma(Acc(from_a[A::at(L::of_register(r, kRow), 0)]),
                           Acc(from_b[B::at(L::of_register(r, kColumn), 0)]), sums[r]);
    }
  }
}

}  // namespace detail

// An operand in shared memory whose fragments the warp loads when needed. `Copied`: the operand was copied unchanged
// from global memory, so tf32 elements still have to be rounded.
template <typename O, bool IsB, bool Copied = false>
struct SharedOperand {
  using element = typename O::element;
  static constexpr int kSteps = O::kWholeDepth / O::kStep;
  Fragments<O, IsB> fragments;
  int first;  // the first row of this warp

  TILE_INLINE SharedOperand(const element* memory, int row) : fragments(memory), first(row) {}
  TILE_INLINE void read(uint32_t (&r)[4], int row, int step) const {
    fragments.read(r, first + row, step);
    if constexpr (Copied) detail::round_words<element>(r);
  }
};

// The left operand of a product, held by a warp in registers. Its layout is that of the sums of another product
// (mma_layout with one warp along the columns). Two blocks of 8 columns are one step of k.
template <typename In, typename L>
struct HeldOperand {
  static_assert(sizeof(In) == 2);
  using element = In;
  static constexpr int kBlocks = L::kRegisters / 4, kSteps = (L::size(1) + 15) / 16;
  const Tile<In, L>& x;

  TILE_INLINE void read(uint32_t (&r)[4], int row, int step) const {
    constexpr int kBlocksN = (L::size(1) + 7) / 8;
    const int block = row / 16 * kBlocksN + 2 * step;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // Columns after the last one are zeros.
      const int at = (block + i / 2) * 4 + i % 2 * 2;
      const bool there = 2 * step + i / 2 < kBlocksN;
      r[i] = there ? uint32_t(x.v[at].bits) | uint32_t(x.v[at + 1].bits) << 16 : 0;
    }
  }
};

namespace detail {

// Adds a product to a thread's sums, which are kBlocksM x kBlocksN fragments.
template <typename Sums, typename A, typename B, typename Acc>
TILE_INLINE void multiply(const A& a, const B& b, Acc* sums) {
  using Mma = sm80::Mma<typename A::element, typename B::element>;
  constexpr int kM = Sums::kBlocksM, kN = Sums::kBlocksN;
#pragma unroll
  for (int step = 0; step < B::kSteps; ++step) {
    uint32_t fa[kM][4], fb[(kN + 1) / 2][4];
#pragma unroll
    for (int i = 0; i < kM; ++i) a.read(fa[i], 16 * i, step);
#pragma unroll
    for (int j = 0; j < kN; j += 2) b.read(fb[j / 2], 8 * j, step);
#pragma unroll
    for (int i = 0; i < kM; ++i) {
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        const uint32_t half[2] = {fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]};
        Mma::issue(*reinterpret_cast<Acc(*)[4]>(sums + (i * kN + j) * 4), fa[i], half);
      }
    }
  }
}

}  // namespace detail

// Returns c + a b for operands in a form that tensor cores can read: SharedOperand or HeldOperand.
template <typename Sums, typename A, typename B, typename Acc, typename L>
TILE_INLINE Tile<Acc, L> multiply(const A& a, const B& b, const Tile<Acc, L>& c) {
  using Sum = typename sm80::Mma<typename A::element, typename B::element>::Acc;
  Tile<Sum, L> y = map([](Acc x) { return cast<Sum>(x); }, c);
  detail::multiply<Sums>(a, b, y.v);
  return map([](Sum x) { return cast<Acc>(x); }, y);
}
// The first row (Dim = 0) or column (Dim = 1) of this warp in a tile of sums.
template <typename L, int Dim>
TILE_INLINE int warp_start() {
  return L::of_warp(int(threadIdx.x) / 32, Dim);
}

// Waits until all groups of copies except the last `Pending` groups are visible to all threads. Also waits until all
// threads have finished reading, so that the memory of the next copies can be overwritten.
template <int Pending>
TILE_INLINE void wait_for_copies() {
  sm80::wait_copies<Pending>();
  sync();
}

// Stores a tile to shared memory as an operand. A barrier is needed before the operand is read.
template <typename O, typename By, int RowDim, typename T, typename L>
TILE_INLINE void put(typename O::element* memory, const Tile<T, L>& x) {
  detail::put_operand<O, Axes<RowDim, 1 - RowDim>>(memory, x, 0, L::kRegisters,
                                                   [](T e) { return detail::piece_of<By>(e, 0); });
  O::fill_up(memory, L::kThreads);
}

namespace detail {

// Starts to copy V neighbouring elements. Element i is copied if may(i), and set to zero otherwise. If may() is the
// same for all elements, a single asynchronous copy is used; otherwise the elements are copied one by one.
template <int V, typename E, typename T, typename May>
TILE_INLINE void copy_run(E* to, const T* from, May may) {
  constexpr int kBytes = V * int(sizeof(T));
  static_assert(sizeof(T) == sizeof(E) && (kBytes == 4 || kBytes == 8 || kBytes == 16));
  bool all = true, none = true;
#pragma unroll
  for (int i = 0; i < V; ++i) {
    all = all && may(i);
    none = none && !may(i);
  }
  if (all || none) {
    sm80::copy_async<kBytes>(cuda::shared_address(to), from, all ? kBytes : 0);
  } else {
#pragma unroll
    for (int i = 0; i < V; ++i) to[i] = may(i) ? __builtin_bit_cast(E, from[i]) : E{};
  }
}

}  // namespace detail

// Starts to copy the elements that the pointers in tile `p` refer to into the shared memory of an operand, V
// neighbouring elements at a time. Elements whose mask is false become zero. The copies belong to the thread's current
// group (sm80::commit_copies).
template <typename O, int RowDim, int V, typename T, typename L, typename M>
TILE_INLINE void copy_async(typename O::element* memory, const Tile<T*, L>& p, const M& mask) {
  constexpr int kDepthDim = 1 - RowDim;
  const Place here = L::here();
  const int at = O::at(here.at[RowDim], here.at[kDepthDim]);
  bool mine = true;
  if constexpr (L::kReplicated) mine = L::owner();
#pragma unroll
  for (int r = 0; r < L::kRegisters; r += V) {
    if (!mine || !L::inside(here, r)) continue;
    detail::copy_run<V>(memory + at + O::at(L::of_register(r, RowDim), L::of_register(r, kDepthDim)), p.v[r],
                        [&](int i) { return bool(detail::element(mask, r + i)); });
  }
}

// The bytes of shared memory that dot() needs.
template <typename By, typename Sums, typename La, typename Lb>
constexpr int dot_bytes() {
  return detail::Operands<By, Sums, La, Lb>::kBytes;
}

// Returns c + a b. `Sums` is the mma_layout of the rows and columns of c, which must be the layout of c. With
// by_thread, `Sums` is by_plain, and c may have any layout. A batch dimension must be the first dimension. In each
// tile, only the outermost register digits may index the batch dimension. The products of a batch pass through shared
// memory one after another.
template <typename By, typename Sums, typename T, typename U, typename Acc, typename La, typename Lb, typename Lc,
          typename S>
TILE_INLINE Tile<Acc, Lc> dot(S shared, const Tile<T, La>& a, const Tile<U, Lb>& b, const Tile<Acc, Lc>& c) {
  constexpr int kRank = La::kRank;
  constexpr int kBatch = kRank == 3 ? La::size(0) : 1;
  static_assert(kBatch == 1 || (La::kRegisters % kBatch == 0 && Lb::kRegisters % kBatch == 0));
  using Two = detail::Operands<By, Sums, La, Lb>;
  using A = typename Two::A;
  using B = typename Two::B;
  using In = typename By::In;
  constexpr int kA = La::kRegisters / kBatch, kB = Lb::kRegisters / kBatch, kC = Lc::kRegisters / kBatch;
  // c, converted to the type of the sums.
  using Sum = typename By::Sum;
  Tile<Sum, Lc> y = map([](Acc x) { return cast<Sum>(x); }, c);
#pragma unroll
  for (int batch = 0; batch < kBatch; ++batch) {
    auto* memory_a = reinterpret_cast<In*>(shared.begin());
    if (batch > 0) sync();
    auto* memory_b = memory_a + By::pieces * (A::kBytes / int(sizeof(In)));
#pragma unroll
    for (int p = 0; p < By::pieces; ++p) {
      In* to_a = memory_a + p * (A::kBytes / int(sizeof(In)));
      In* to_b = memory_b + p * (B::kBytes / int(sizeof(In)));
      detail::put_operand<A, typename Two::AxesA>(to_a, a, batch * kA, kA,
                                                  [&](T x) { return detail::piece_of<By>(x, p); });
      detail::put_operand<B, typename Two::AxesB>(to_b, b, batch * kB, kB,
                                                  [&](U x) { return detail::piece_of<By>(x, p); });
      A::fill_up(to_a, La::kThreads);
      B::fill_up(to_b, La::kThreads);
    }
    sync();
    if constexpr (detail::is_by_thread<By>) {
      detail::multiply_by_thread<Lc, A, B>(memory_a, memory_b, y.v, batch * kC, kC);
    } else {
      const Place here = Lc::of_thread(int(threadIdx.x) / 32 * 32);
      const int row = here.at[kRank - 2], column = here.at[kRank - 1];
      // The products with smaller pieces come first.
#pragma unroll
      for (int p = 2 * By::pieces - 2; p >= 0; --p) {
        const int of_a = p == 1 ? 1 : 0, of_b = p == 2 ? 1 : 0;
        const SharedOperand<A, false> from_a(memory_a + of_a * (A::kBytes / int(sizeof(In))), row);
        const SharedOperand<B, true> from_b(memory_b + of_b * (B::kBytes / int(sizeof(In))), column);
        detail::multiply<Sums>(from_a, from_b, y.v + batch * kC);
      }
    }
  }
  return map([](Sum x) { return cast<Acc>(x); }, y);
}

}  // namespace heddle::tile::block
