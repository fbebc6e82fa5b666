// Building blocks of kernels that run all steps of a recurrence. codegen/recurrence/recurrent.h generates the kernels.
//
// A cluster of kCluster blocks runs every step for kRows rows of the batch. Clusters are independent of each other. The
// units (columns) of a state are divided among the blocks of the cluster. In a block, each unit is assigned to a fixed
// thread group of kLanes lanes. The shared memory of every block holds the complete vectors that are multiplied by the
// constant matrices. The columns of the matrices are in the registers (or the shared memory) of the thread group that
// uses them. In a step, every lane multiplies its part of k for all rows, and the thread group reduces the sums. Lanes
// then apply the gates to the rows that they own, and send the inputs of the next product to all blocks.
#pragma once

#include "tile/arch/sm90/cluster.h"
#include "tile/op/cuda/stitch.h"

namespace heddle::tile::cuda {

template <int Cluster, int Lanes, int Rows>
struct RecurrentTeam {
  static_assert((Lanes & (Lanes - 1)) == 0 && Lanes <= 32 && (Rows & (Rows - 1)) == 0);
  static constexpr int kOwned = Rows > Lanes ? Rows / Lanes : 1;   // the number of rows that a lane owns
  static constexpr int kCopies = Lanes > Rows ? Lanes / Rows : 1;  // the number of lanes that own the same row

  int thread = static_cast<int>(threadIdx.x);
  int lane = thread % Lanes, team = thread / Lanes;
  int rank = static_cast<int>(blockIdx.x) % Cluster;
  int first = lane / kCopies * kOwned;  // the first row that this lane owns
  int copy = lane % kCopies;
};

// Rounds a value to the storage type T.
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

// A thread's part of the columns of a matrix, in registers or in shared memory. Element i of the thread is from[i *
// stride].
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

// For each row, multiplies this lane's part of `vector` by the columns of the lane's unit, and adds the product with
// column s to sum[row][s]. Of every Lanes * Width elements of the vector, the lane's part is the Width elements from
// lane * Width on. `pitch` is the stride between the rows of `vector`, in elements.
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

// Adds the sums of all lanes of a thread group, with butterfly exchanges. In each exchange, a lane keeps the half of
// the rows that contains its own rows, and sends the other half. Once a lane has a single row, exchanges add that row's
// sum in all lanes. At the end, sum[0 .. kOwned) are the sums of the rows that the lane owns. The order of the
// additions depends only on the position of the row.
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

// Multiplies, and adds the sums of all lanes of the thread group. At the end, sum[0 .. kOwned) are the sums of the rows
// that the lane owns.
template <int Lanes, int Rows, int Sums, int Share, int Width, typename Weights>
__device__ inline void recurrent_sums(float (&sum)[Rows][Sums], const Weights& weights, int stride, const float* vector,
                                      int pitch, int lane) {
  recurrent_multiply<Lanes, Rows, Sums, Share, Width>(sum, weights, stride, vector, pitch, lane);
  recurrent_fold<Lanes / 2, Rows>(sum, lane);
}

// Sends the elements of a vector to all blocks of a cluster. `barrier` counts the bytes that arrive at this block. If
// the cluster has only one block, __syncthreads() replaces `barrier`.
template <int Cluster>
struct RecurrentExchange {
  sm90::Barrier* barrier;

  __device__ void init() {
    if constexpr (Cluster > 1) barrier->init(1);
  }
  // Announces the number of bytes of a phase. One thread calls this function before wait().
  __device__ void expect(int bytes) const {
    if constexpr (Cluster > 1) barrier->arrive_expect(static_cast<uint32_t>(bytes));
  }
  // Stores `value` at `at` in the shared memory of every block. The Copies lanes that have the same value divide the
  // blocks among themselves; `copy` is the lane's index among these lanes.
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
