// Neighbours of a product's result reduced while they are fragments of accumulators, for epilogues that want it:
//
//   struct Epilogue {
//     static constexpr bool kReduces = true;
//     static constexpr bool kStores = false;  // nothing else is done with the accumulators
//     struct Reduction0 {
//       static constexpr bool kRows = false;  // of 16 rows of each column; else of 32 columns of each row
//       using Combine = tile::sum_of;         // of team.h
//       // In place of the accumulators v[0..n), neighbours of a row of D, what is reduced.
//       template <typename T, int W> __device__ void value(T (&v)[W], int batch, int row, int col, int n) const;
//       // Stores a result; `row` (`col`) counts the groups of rows (columns).
//       __device__ void keep(int batch, int row, int col, float v) const;
//     };
//     template <typename F> __device__ void reductions(const F& f) const { f(Reduction0{...}); }
//   };
#pragma once

#include "tile/core/cuda_gemm.h"
#include "tile/core/types.h"
#include "tile/op/cuda/team.h"

namespace heddle::tile::cuda {

template <typename Epilogue, typename = void>
struct Reduces {
  static constexpr bool value = false, stores = true;
};
template <typename Epilogue>
struct Reduces<Epilogue, decltype(void(Epilogue::kReduces))> {
  static constexpr bool value = true, stores = Epilogue::kStores;
};

// A warp's 16 rows and N columns of D, from (row, col): sums(j, h, i) is the accumulator of its row lane / 4 + 8 h and
// column 8 j + 2 (lane % 4) + i. Groups that are reduced are inside of D or outside as a whole.
template <int N, typename Sums, typename Reduction>
class FragmentReducer {
  using Combine = typename Reduction::Combine;

 public:
  __device__ FragmentReducer(const Sums& sums, const Reduction& reduction, const GemmArgs& args, int batch, int row,
                             int col)
      : sums_(sums), reduction_(reduction), args_(args), batch_(batch), row_(row), col_(col) {}

  __device__ void run() const {
    if constexpr (Reduction::kRows) {
      rows();
    } else {
      columns();
    }
  }

 private:
  static constexpr int kAcross = kGemmPartialColumns / 8;
  static_assert(kGemmPartialRows == 16 && kAcross == 4, "a fragment's rows; a lane's result of each group of four");

  __device__ static float combine(float a, float b) { return Combine::apply(a, b); }
  template <int First, int Last>
  __device__ static float over_lanes(float x) {
#pragma unroll
    for (int distance = First; distance <= Last; distance *= 2) {
      x = combine(x, __shfl_xor_sync(0xffffffffu, x, distance));
    }
    return x;
  }
  __device__ int first_row() const {
    return row_ + static_cast<int>(threadIdx.x) % 32 / 4;
  }
  __device__ int first_column() const {
    return col_ + 2 * (static_cast<int>(threadIdx.x) % 4);
  }

  // Where it is outside, what some pair of D has: it is not kept.
  __device__ void pair(float (&v)[2], int j, int h) const {
    const int row = first_row() + 8 * h, col = first_column() + 8 * j;
    v[0] = sums_(j, h, 0), v[1] = sums_(j, h, 1);
    const int from = col < args_.n ? col : 0, left = args_.n - from;
    reduction_.value(v, batch_, row < args_.m ? row : 0, from, left < 2 ? left : 2);
  }

  // Four groups of columns at a time, of which each lane of a row keeps one.
  __device__ void columns() const {
    const int lane = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = first_row() + 8 * h;
#pragma unroll
      for (int first = 0; first < N / kGemmPartialColumns; first += 4) {
        float mine = 0;
#pragma unroll
        for (int group = first; group < N / kGemmPartialColumns && group < first + 4; ++group) {
          float x = Combine::template identity<float>();
#pragma unroll
          for (int j = group * kAcross; j < (group + 1) * kAcross; ++j) {
            float v[2];
            pair(v, j, h);
            x = combine(x, combine(v[0], v[1]));
          }
          x = over_lanes<1, 2>(x);
          if (lane == group - first) mine = x;
        }
        const int group = first + lane, col = col_ + group * kGemmPartialColumns;
        if (group < N / kGemmPartialColumns && row < args_.m && col < args_.n) {
          reduction_.keep(batch_, row, col / kGemmPartialColumns, mine);
        }
      }
    }
  }

  __device__ void rows() const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
      float low[2], high[2];
      pair(low, j, 0);
      pair(high, j, 1);
      const int col = first_column() + 8 * j;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float x = over_lanes<4, 16>(combine(low[i], high[i]));
        if (lane < 4 && row_ < args_.m && col + i < args_.n)
          reduction_.keep(batch_, row_ / kGemmPartialRows, col + i, x);
      }
    }
  }

  const Sums& sums_;
  const Reduction& reduction_;
  const GemmArgs& args_;
  const int batch_, row_, col_;
};

// All reductions of an epilogue, of such a part of D. Called by a warp.
template <int N, typename Sums, typename Epilogue>
__device__ inline void reduce_fragments(const Sums& sums, const Epilogue& epilogue, const GemmArgs& args, int batch,
                                        int row, int col) {
  static_assert(N % kGemmPartialColumns == 0);
  epilogue.reductions([&]<typename Reduction>(const Reduction& reduction) {
    FragmentReducer<N, Sums, Reduction>(sums, reduction, args, batch, row, col).run();
  });
}

}  // namespace heddle::tile::cuda
