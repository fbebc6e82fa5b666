// Products of tiles: c + a b with a of M x K, b of K x N, c of M x N elements, on tensor cores (mma.sync) where they
// multiply the type, else by each thread's own arithmetic. Operands go through shared memory.
#pragma once

#include "tile/block/operand.h"

namespace heddle::tile::block {

// The layout of sums: a warp has blocks of 16 x 8, `MBlocks` x `NBlocks` of them, WarpsM x WarpsN warps; further warps
// hold the same.
template <int M, int N, int WarpsM, int WarpsN, int Warps = WarpsM* WarpsN>
struct mma_layout {
  // Fragments of B are read two blocks at a time.
  static constexpr int kCoveredM = 16 * WarpsM * ((M + 16 * WarpsM - 1) / (16 * WarpsM));
  static constexpr int kCoveredN = 8 * WarpsN * ((N + 8 * WarpsN - 1) / (8 * WarpsN)) + 8;
  static constexpr int kBlocksM = (M + 16 * WarpsM - 1) / (16 * WarpsM), kBlocksN = (N + 8 * WarpsN - 1) / (8 * WarpsN);
  using type = Layout<dims<M, N>, reg<2, 1, 1>, lane<4, 1, 2>, lane<8, 0, 1>, reg<2, 0, 8>, reg<kBlocksN, 1, 8>,
                      reg<kBlocksM, 0, 16>, warp<WarpsM, 0, 16 * kBlocksM>, warp<WarpsN, 1, 8 * kBlocksN>,
                      warp<Warps / (WarpsM * WarpsN)>>;
};
template <int M, int N, int WarpsM, int WarpsN, int Warps = WarpsM* WarpsN>
using mma_layout_t = typename mma_layout<M, N, WarpsM, WarpsN, Warps>::type;

// What multiplies elements of T. `In`: what lies in shared memory; `pieces`: of how many numbers of it one element is
// the sum.
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
// Three products of tf32 for one of f32: 2^-21 off at most.
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
// A thread's own arithmetic in T.
template <typename T>
struct by_thread {
  using In = T;
  using Sum = T;
  static constexpr int pieces = 1;
};

// Sums of by_thread: what they read is inside.
template <int M, int N>
struct by_plain {
  static constexpr int kCoveredM = M, kCoveredN = N;
};

namespace detail {

template <typename A>
inline constexpr bool is_by_thread = false;
template <typename T>
inline constexpr bool is_by_thread<by_thread<T>> = true;

// Piece number `piece` of an element.
template <typename By, typename T>
TILE_INLINE typename By::In piece_of(T x, int piece) {
  using In = typename By::In;
  if constexpr (is_same<In, cuda::tf32>) {
    const float f = cast<float>(x), high = cuda::from_float<cuda::tf32>(f).value;
    if (piece == 0) return {high};
    // An infinity has no rest.
    const float rest = f - high;
    return cuda::from_float<cuda::tf32>(rest == rest ? rest : 0.f);
  } else {
    return cast<In>(x);
  }
}

// Where operands of a dot lie in shared memory.
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

// Adds the product of operands that lie in shared memory to the sums of a thread, kBlocksM x kBlocksN fragments.
template <typename Sums, typename A, typename B, typename Acc>
TILE_INLINE void multiply(const typename A::element* a, const typename B::element* b, Acc* sums, int row, int column) {
  using Mma = sm80::Mma<typename A::element, typename B::element>;
  static_assert(Mma::kK == A::kStep);
  constexpr int kM = Sums::kBlocksM, kN = Sums::kBlocksN;
  const Fragments<A, false> read_a(a);
  const Fragments<B, true> read_b(b);
#pragma unroll
  for (int step = 0; step < A::kWholeDepth / A::kStep; ++step) {
    uint32_t fa[kM][4], fb[(kN + 1) / 2][4];
#pragma unroll
    for (int i = 0; i < kM; ++i) read_a.read(fa[i], row + 16 * i, step);
#pragma unroll
    for (int j = 0; j < kN; j += 2) read_b.read(fb[j / 2], column + 8 * j, step);
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

// The same by threads: of any layout of sums.
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

// Bytes of shared memory that dot() needs.
template <typename By, typename Sums, typename La, typename Lb>
constexpr int dot_bytes() {
  return detail::Operands<By, Sums, La, Lb>::kBytes;
}

// Sums: mma_layout of the rows and columns of c, of which c has the type; by_plain of them for by_thread, and c any
// layout. A batch is a first dimension, in each tile all of it in the outermost digits of registers; its products go
// through shared memory one after the other.
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
  // In the type of sums.
  using Sum = typename By::Sum;
  Tile<Sum, Lc> y = map([](Acc x) { return cast<Sum>(x); }, c);
#pragma unroll
  for (int batch = 0; batch < kBatch; ++batch) {
    auto* memory_a = reinterpret_cast<In*>(shared.begin());
    if (batch > 0) __syncthreads();
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
    __syncthreads();
    if constexpr (detail::is_by_thread<By>) {
      detail::multiply_by_thread<Lc, A, B>(memory_a, memory_b, y.v, batch * kC, kC);
    } else {
      const Place here = Lc::of_thread(int(threadIdx.x) / 32 * 32);
      const int row = here.at[kRank - 2], column = here.at[kRank - 1];
      // Small products first.
#pragma unroll
      for (int p = 2 * By::pieces - 2; p >= 0; --p) {
        const int of_a = p == 1 ? 1 : 0, of_b = p == 2 ? 1 : 0;
        detail::multiply<Sums, A, B>(memory_a + of_a * (A::kBytes / int(sizeof(In))),
                                     memory_b + of_b * (B::kBytes / int(sizeof(In))), y.v + batch * kC, row, column);
      }
    }
  }
  return map([](Sum x) { return cast<Acc>(x); }, y);
}

}  // namespace heddle::tile::block
