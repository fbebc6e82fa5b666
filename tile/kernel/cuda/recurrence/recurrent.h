// Pieces of kernels that run a recurrence over all its steps (codegen/recurrence/recurrent.h puts them together).
//
// A cluster of kCluster blocks owns kRows rows of the batch and runs every step for them; clusters are independent of
// each other. The units (columns) of a state are divided among the blocks; within a block each unit belongs to a fixed
// team of kLanes lanes. Every block's shared memory holds all of the vectors that the constant matrices multiply. The
// columns of the matrices are in the registers (or the shared memory) of the team that needs them. In a step, every
// lane multiplies its share of k for all rows, the team adds up the sums, and lanes apply the gates to the rows they
// own and send the inputs of the next product to all blocks.
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
  int first = lane / kCopies * kOwned;  // the first row that this lane finishes
  int copy = lane % kCopies;
};

// The error of storing a value as T.
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

// Shares of columns: element i of this thread is at [i * stride] of the given array.
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

// sum[row][s] += this lane's share of the products of a vector with columns s of its unit. The lane's share is Width
// elements, from lane * Width on, of every Lanes * Width elements. `pitch`: elements from row to row.
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

// Adds up over the lanes of a team. While there are rows left to divide, each half of the lanes keeps the half of the
// rows that it finishes; after that every lane has the whole sum. At the end sum[0 .. kOwned) has the rows of the lane,
// from its first on. The order of additions depends only on the position of the row.
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

// Multiplies and adds up: the sums of the rows that the lane finishes.
template <int Lanes, int Rows, int Sums, int Share, int Width, typename Weights>
__device__ inline void recurrent_sums(float (&sum)[Rows][Sums], const Weights& weights, int stride, const float* vector,
                                      int pitch, int lane) {
  recurrent_multiply<Lanes, Rows, Sums, Share, Width>(sum, weights, stride, vector, pitch, lane);
  recurrent_fold<Lanes / 2, Rows>(sum, lane);
}

// One exchange of a vector between the blocks of a cluster: the bytes of all its elements arrive at `barrier`. A single
// block uses the block's barrier instead.
template <int Cluster>
struct RecurrentExchange {
  sm90::Barrier* barrier;

  __device__ void init() {
    if constexpr (Cluster > 1) barrier->init(1);
  }
  // Called by one thread, before the wait of a phase.
  __device__ void expect(int bytes) const {
    if constexpr (Cluster > 1) barrier->arrive_expect(static_cast<uint32_t>(bytes));
  }
  // Lanes with the same value divide the blocks among them.
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
