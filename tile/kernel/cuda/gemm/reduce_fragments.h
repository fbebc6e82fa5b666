// Reduces neighbouring elements of a product's result while they are in accumulator fragments. For epilogues that
// request it:
//
//   struct Epilogue {
//     static constexpr bool kReduces = true;
//     static constexpr bool kStores = false;  // the accumulators have no other use
//     static constexpr bool kShares = true;   // share() first replaces accumulators by values that all reductions use:
//     template <typename T, int W> __device__ void share(T (&v)[W], int batch, int row, int col, int n) const;
//     struct Reduction0 {
//       static constexpr bool kRows = false;  // true: reduces 16 rows of each column; false: 32 columns of each row
//       using Combine = tile::sum_of;         // the operation (team.h)
//       // Replaces v[0..n), neighbours in a row of D, by the values to reduce.
//       template <typename T, int W> __device__ void value(T (&v)[W], int batch, int row, int col, int n) const;
//       // Stores a result. If kRows, `row` is the index of a group of rows; otherwise `col` is that of a column group.
//       __device__ void keep(int batch, int row, int col, float v) const;
//     };
//     template <typename F> __device__ void reductions(const F& f) const { f(Reduction0{...}); }
//   };
#pragma once

#include "tile/core/cuda_gemm.h"
#include "tile/core/types.h"
#include "tile/kernel/cuda/gemm/epilogue_traits.h"
#include "tile/op/cuda/team.h"

namespace heddle::tile::cuda {

// Combines values of `Lanes` lanes whose lane indices are Step apart. Each lane passes an array x. The i-th of these
// lanes returns the combination of x[i] over all of these lanes. Each step halves the number of values per lane. This
// takes Lanes - 1 exchanges instead of Lanes log2(Lanes).
template <typename Combine, int Lanes, int Step>
__device__ inline float combined(float (&x)[Lanes]) {
  const int lane = static_cast<int>(threadIdx.x) / Step % Lanes;
#pragma unroll
  for (int half = Lanes / 2; half > 0; half /= 2) {
    const bool upper = (lane & half) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float other = __shfl_xor_sync(0xffffffffu, upper ? x[i] : x[i + half], half * Step);
      const float mine = upper ? x[i + half] : x[i];
      x[i] = upper ? Combine::apply(other, mine) : Combine::apply(mine, other);
    }
  }
  return x[0];
}

// A warp's accumulators of 16 rows and N columns of D, starting at (row, col). sums(j, h, i) is the accumulator of row
// lane / 4 + 8 h and column 8 j + 2 (lane % 4) + i. A reduced group must be entirely inside or entirely outside D.
template <int N, typename Sums>
class SumFragments {
  static constexpr int kAcross = kGemmPartialColumns / 8, kGroups = N / kGemmPartialColumns;
  static_assert(N % kGemmPartialColumns == 0 && kGemmPartialRows == 16, "the rows of a fragment");

 public:
  __device__ SumFragments(const Sums& sums, const GemmArgs& args, int batch, int row, int col)
      : sums_(sums), args_(args), batch_(batch), row_(row), col_(col), lane_(static_cast<int>(threadIdx.x) % 32) {}

  // Calls function(v, batch, row, col, n) for a pair of neighbouring columns. For a pair outside D, passes a position
  // inside D instead.
  template <typename Function>
  __device__ void pair(float (&v)[2], int j, int h, const Function& function) const {
    const int row = row_ + lane_ / 4 + 8 * h, col = col_ + 8 * j + 2 * (lane_ % 4);
    const int from = col < args_.n ? col : 0, left = args_.n - from;
    v[0] = sums_(j, h, 0), v[1] = sums_(j, h, 1);
    function(v, batch_, row < args_.m ? row : 0, from, left < 2 ? left : 2);
  }

  // Applies `function` to all accumulators in place.
  template <typename Function>
  __device__ void change(const Function& function) const {
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float v[2];
        pair(v, j, h, function);
        sums_(j, h, 0) = v[0], sums_(j, h, 1) = v[1];
      }
    }
  }

  // Reduces four groups of columns at a time. Each of the four lanes of a row keeps one result.
  template <typename Reduction>
  __device__ void reduce_columns(const Reduction& reduction) const {
    using Combine = typename Reduction::Combine;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = row_ + lane_ / 4 + 8 * h;
#pragma unroll
      for (int first = 0; first < kGroups; first += 4) {
        float x[4];
#pragma unroll
        for (int group = 0; group < 4; ++group) {
          x[group] = Combine::template identity<float>();
          if (first + group >= kGroups) continue;
#pragma unroll
          for (int j = 0; j < kAcross; ++j) {
            float v[2];
            pair(v, (first + group) * kAcross + j, h, value_of(reduction));
            x[group] = Combine::apply(x[group], Combine::apply(v[0], v[1]));
          }
        }
        const float mine = combined<Combine, 4, 1>(x);
        const int group = first + lane_ % 4, col = col_ + group * kGemmPartialColumns;
        if (group < kGroups && row < args_.m && col < args_.n) {
          reduction.keep(batch_, row, col / kGemmPartialColumns, mine);
        }
      }
    }
  }

  // Reduces eight columns of each lane at a time. Each of the eight lanes of a column keeps one result.
  template <typename Reduction>
  __device__ void reduce_rows(const Reduction& reduction) const {
    using Combine = typename Reduction::Combine;
#pragma unroll
    for (int first = 0; first < N / 8; first += 4) {
      float x[8];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float low[2], high[2];
        pair(low, first + j, 0, value_of(reduction));
        pair(high, first + j, 1, value_of(reduction));
#pragma unroll
        for (int i = 0; i < 2; ++i) x[2 * j + i] = Combine::apply(low[i], high[i]);
      }
      const float mine = combined<Combine, 8, 4>(x);
      const int number = lane_ / 4, col = col_ + 8 * (first + number / 2) + 2 * (lane_ % 4) + number % 2;
      if (row_ < args_.m && col < args_.n) reduction.keep(batch_, row_ / kGemmPartialRows, col, mine);
    }
  }

 private:
  template <typename Reduction>
  __device__ static auto value_of(const Reduction& reduction) {
    return [&](auto& v, int batch, int row, int col, int n) { reduction.value(v, batch, row, col, n); };
  }

  const Sums& sums_;
  const GemmArgs& args_;
  const int batch_, row_, col_, lane_;
};

// Runs an epilogue's share() and reductions on a warp's 16 x N piece of D. Called before the warp stores the piece.
template <int N, typename Sums, typename Epilogue>
__device__ inline void reduce_fragments(const Sums& sums, const Epilogue& epilogue, const GemmArgs& args, int batch,
                                        int row, int col) {
  const SumFragments<N, Sums> fragments(sums, args, batch, row, col);
  if constexpr (Epilogue::kShares) {
    fragments.change([&](auto& v, int b, int r, int c, int n) { epilogue.share(v, b, r, c, n); });
  }
  epilogue.reductions([&]<typename Reduction>(const Reduction& reduction) {
    if constexpr (Reduction::kRows) {
      fragments.reduce_rows(reduction);
    } else {
      fragments.reduce_columns(reduction);
    }
  });
}

}  // namespace heddle::tile::cuda
