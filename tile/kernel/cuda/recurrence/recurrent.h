// Pieces of kernels that run a recurrence over all its steps (codegen/recurrence/recurrent.h puts them together).
//
// A cluster of kCluster blocks owns kRows rows of the batch and runs every step for them; clusters do not depend on
// each other. The units of a state (its columns) are spread over the blocks, each over a team of kLanes lanes that
// stays with it. The vectors that the constant matrices multiply lie whole in every block's shared memory; the
// matrices' columns lie in the registers (or the shared memory) of the team that needs them. A step is: every lane
// multiplies its share of k for all rows, the team adds up, lanes apply the gates to the rows they own and send what
// the next product reads to all blocks.
#pragma once

#include "tile/arch/sm90/cluster.h"
#include "tile/op/cuda/stitch.h"

namespace heddle::tile::cuda {

template <int Cluster, int Lanes, int Rows>
struct RecurrentTeam {
  static_assert((Lanes & (Lanes - 1)) == 0 && Lanes <= 32 && (Rows & (Rows - 1)) == 0);
  static constexpr int kOwned = Rows > Lanes ? Rows / Lanes : 1;   // rows that a lane finishes
  static constexpr int kCopies = Lanes > Rows ? Lanes / Rows : 1;  // lanes that finish the same row

  int thread = static_cast<int>(threadIdx.x);
  int lane = thread % Lanes, team = thread / Lanes;
  int rank = static_cast<int>(blockIdx.x) % Cluster;
  int first = lane / kCopies * kOwned;  // of the rows that this lane finishes
  int copy = lane % kCopies;
};

// What is left of a value after it was stored as T.
template <typename T, typename V>
__device__ inline float rounded(V x) {
  if constexpr (is_same<T, float>) {
    return x.v;
  } else {
    T stored;
    store(&stored, x);
    return load<1>(&stored).v;
  }
}

// Shares of columns, element i of this thread at [i * stride] of what is passed in.
template <int Count>
struct RegisterWeights {
  float w[Count];
  __device__ RegisterWeights(const float* from, int stride, float*) {
#pragma unroll
    for (int i = 0; i < Count; ++i) w[i] = from[i * stride];
  }
  __device__ float operator()(int i, int) const {
    return w[i];
  }
};
template <int Count>
struct SharedWeights {
  const float* w;
  __device__ SharedWeights(const float* from, int stride, float* to) : w(to) {
    for (int i = 0; i < Count; ++i) to[i * stride] = from[i * stride];
  }
  __device__ float operator()(int i, int stride) const { return w[i * stride]; }
};

// sum[row][s] += this lane's share of the products of a vector with columns s of its unit. The share: of every Lanes *
// Width elements the Width at lane * Width. `pitch`: elements from row to row.
template <int Lanes, int Rows, int Sums, int Share, int Width, typename Weights>
__device__ inline void recurrent_multiply(float (&sum)[Rows][Sums], const Weights& weights, int stride,
                                          const float* vector, int pitch, int lane) {
  static_assert(Share % Width == 0);
#pragma unroll
  for (int piece = 0; piece < Share / Width; ++piece) {
    vec<float, Width> x[Rows];
#pragma unroll
    for (int r = 0; r < Rows; ++r) x[r] = load<Width, Width>(vector + r * pitch + (piece * Lanes + lane) * Width);
#pragma unroll
    for (int i = 0; i < Width; ++i) {
#pragma unroll
      for (int s = 0; s < Sums; ++s) {
        const float w = weights((piece * Width + i) * Sums + s, stride);
#pragma unroll
        for (int r = 0; r < Rows; ++r) sum[r][s] = __builtin_fmaf(w, x[r][i], sum[r][s]);
      }
    }
  }
}

// Adds up over the lanes of a team. Where there are rows left to part, each half of the lanes keeps the half of the
// rows that it finishes, else every lane has the whole sum: afterwards sum[0 .. kOwned) are rows first .. of the lane.
// The order of additions depends on the row's place only.
template <int Distance, int Rows, int Most, int Sums>
__device__ inline void recurrent_fold(float (&sum)[Most][Sums], int lane) {
  if constexpr (Distance > 0) {
    constexpr int kHalf = Rows / 2;
    if constexpr (Rows > 1) {
      const bool upper = (lane & Distance) != 0;
#pragma unroll
      for (int r = 0; r < kHalf; ++r) {
#pragma unroll
        for (int s = 0; s < Sums; ++s) {
          const float give = upper ? sum[r][s] : sum[r + kHalf][s], keep = upper ? sum[r + kHalf][s] : sum[r][s];
          sum[r][s] = keep + __shfl_xor_sync(0xffffffffu, give, Distance);
        }
      }
    } else {
#pragma unroll
      for (int s = 0; s < Sums; ++s) sum[0][s] += __shfl_xor_sync(0xffffffffu, sum[0][s], Distance);
    }
    recurrent_fold<Distance / 2, (Rows > 1 ? kHalf : 1)>(sum, lane);
  }
}

// Both: the sums of the rows that the lane finishes.
template <int Lanes, int Rows, int Sums, int Share, int Width, typename Weights>
__device__ inline void recurrent_sums(float (&sum)[Rows][Sums], const Weights& weights, int stride, const float* vector,
                                      int pitch, int lane) {
  recurrent_multiply<Lanes, Rows, Sums, Share, Width>(sum, weights, stride, vector, pitch, lane);
  recurrent_fold<Lanes / 2, Rows>(sum, lane);
}

// One exchange of a vector between the blocks of a cluster: the bytes of all its elements arrive at `barrier`. A block
// alone uses the block's barrier instead.
template <int Cluster>
struct RecurrentExchange {
  sm90::Barrier* barrier;

  __device__ void init() {
    if constexpr (Cluster > 1) barrier->init(1);
  }
  // By one thread, before the wait of a phase.
  __device__ void expect(int bytes) const {
    if constexpr (Cluster > 1) barrier->arrive_expect(static_cast<uint32_t>(bytes));
  }
  // The lanes that have the same value share the blocks.
  template <int Copies>
  __device__ void send(float* at, float value, int copy) const {
    if constexpr (Cluster > 1) {
#pragma unroll
      for (int i = 0; i < (Cluster + Copies - 1) / Copies; ++i) {
        const int block = copy + i * Copies;
        if (block < Cluster) sm90::store_async(at, value, barrier, static_cast<uint32_t>(block));
      }
    } else {
      if (copy == 0) *at = value;
    }
  }
  __device__ void wait(int parity) const {
    if constexpr (Cluster > 1) {
      barrier->wait(static_cast<uint32_t>(parity));
    } else {
      __syncthreads();
    }
  }
};

}  // namespace heddle::tile::cuda
