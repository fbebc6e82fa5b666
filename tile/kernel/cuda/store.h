// From accumulators to D: the epilogue on neighbours of a row, and stores as wide as D's alignment allows.
#pragma once

#include "tile/arch/sm80/convert.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::tile::cuda {

// The first min(W, n) elements at `from`; n >= 1. For epilogues.
template <int W, typename T>
__device__ inline void load_row(float (&v)[W], const T* from, int n) {
#pragma unroll
  for (int i = 0; i < W; ++i) v[i] = to_float(from[i < n ? i : 0]);
}

// What an epilogue sees: sums of int8 products stay integers only on their way to an integer D.
template <typename Acc, typename Out>
struct epilogue_value {
  using type = float;
};
template <>
struct epilogue_value<int32_t, int32_t> {
  using type = int32_t;
};
template <typename Acc, typename Out>
using epilogue_value_t = typename epilogue_value<Acc, Out>::type;

// An epilogue that leaves the sums as they are.
struct NoEpilogue {
  template <typename T, int W>
  __device__ void operator()(T (&)[W], int, int, int, int) const {}
};

template <typename T, int W>
struct alignas(sizeof(T) * W) Neighbours {
  T x[W];
};

// Stores the first n of v; in one piece where all are valid and `to` is aligned.
template <typename Out, typename T, int W>
__device__ inline void store_neighbours(Out* to, const T (&v)[W], int n) {
  Neighbours<Out, W> all;
#pragma unroll
  for (int i = 0; i < W; ++i) all.x[i] = convert<Out>(v[i]);
  if (n == W && reinterpret_cast<uint64_t>(to) % sizeof(all) == 0) {
    *reinterpret_cast<Neighbours<Out, W>*>(to) = all;
  } else {
#pragma unroll
    for (int i = 0; i < W; ++i) {
      if (i < n) to[i] = all.x[i];
    }
  }
}

// Rows of accumulators through shared memory, so that a lane holds 16 bytes of D's row. A warp has a buffer of 16 rows
// of its own; pitches of 8 words more than a multiple of 16 meet no bank twice when fragments are written.
template <typename Config, typename Acc, int Columns>
class StagedStore {
  static constexpr bool kPartial = Config::kStore == GemmStore::kPartial;
  template <bool Partial, typename C>
  struct out_of {
    using type = typename C::Out;
  };
  template <typename C>
  struct out_of<true, C> {
    using type = Acc;
  };
  using Out = typename out_of<kPartial, Config>::type;
  using Value = epilogue_value_t<Acc, Out>;
  static constexpr int kPitch = Columns + kGemmStagePad, W = 16 / sizeof(Out) < 16 ? 16 / sizeof(Out) : 8;
  static constexpr int kAcross = Columns / W, kRowsAtOnce = 32 / kAcross;
  static_assert(Columns % W == 0 && 32 % kAcross == 0);

 public:
  __device__ StagedStore(const GemmArgs& args, const GemmUnit& unit, uint8_t* shared, int warp)
      : args_(args),
        batch_(unit.batch),
        to_(static_cast<Out*>(args.d) + unit.batch * args.d_batch + (kPartial ? unit.split * args.d_split : 0)),
        buffer_(reinterpret_cast<Value*>(shared) + warp * 16 * kPitch) {}

  // Fragments of sm80::Mma: 16 rows from `row`, columns from `column` of D.
  template <int Blocks, typename Epilogue>
  __device__ void band(const Acc (&acc)[Blocks][4], const Epilogue& epilogue, int row, int column) const {
    const int lane = threadIdx.x % 32;
    __syncwarp();  // the band before is read
#pragma unroll
    for (int j = 0; j < Blocks; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        *reinterpret_cast<Neighbours<Value, 2>*>(buffer_ + (lane / 4 + 8 * h) * kPitch + 8 * j + 2 * (lane % 4)) = {
            {static_cast<Value>(acc[j][2 * h]), static_cast<Value>(acc[j][2 * h + 1])}};
      }
    }
    __syncwarp();
    const int inside = lane % kAcross * W, n = args_.n - column - inside;
#pragma unroll
    for (int r = 0; r < 16; r += kRowsAtOnce) {
      const int at = r + lane / kAcross;
      if (at >= 16 || row + at >= args_.m || n <= 0) continue;
      Value v[W];
#pragma unroll
      for (int i = 0; i < W; i += 4) {
        const auto four = *reinterpret_cast<const Neighbours<Value, 4>*>(buffer_ + at * kPitch + inside + i);
#pragma unroll
        for (int c = 0; c < 4; ++c) v[i + c] = four.x[c];
      }
      const int valid = n < W ? n : W;
      if constexpr (!kPartial) epilogue(v, batch_, row + at, column + inside, valid);
      store_neighbours(to_ + (row + at) * args_.d_row + column + inside, v, valid);
    }
  }

 private:
  const GemmArgs& args_;
  int batch_;
  Out* to_;
  Value* buffer_;
};

}  // namespace heddle::tile::cuda
