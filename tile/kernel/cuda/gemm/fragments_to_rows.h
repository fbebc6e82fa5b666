// Passes accumulators to the epilogue as neighbouring elements of a row of D.
#pragma once

#include "tile/arch/sm80/convert.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/epilogue_traits.h"
#include "tile/kernel/cuda/row.h"

namespace heddle::tile::cuda {

// A value of an epilogue that turns sums of integers into floats: the sum before the call, the float after it.
class IntegerSum {
 public:
  IntegerSum() = default;
  __device__ explicit IntegerSum(int32_t sum) : bits_(sum) {}
  __device__ explicit IntegerSum(float result) : bits_(__builtin_bit_cast(int32_t, result)) {}
  __device__ explicit operator int32_t() const { return bits_; }
  __device__ friend float to_float(IntegerSum value) { return __builtin_bit_cast(float, value.bits_); }

 private:
  int32_t bits_;
};

// The type of the values that an epilogue receives and returns.
template <typename Acc, typename Out>
struct epilogue_value {
  using type = float;
};
template <typename Out>
struct epilogue_value<int32_t, Out> {
  using type = IntegerSum;
};
template <>
struct epilogue_value<int32_t, int32_t> {
  using type = int32_t;
};
template <>
struct epilogue_value<int32_t, int8_t> {
  using type = int32_t;
};
template <>
struct epilogue_value<int32_t, uint8_t> {
  using type = int32_t;
};
template <typename Acc, typename Out>
using epilogue_value_t = typename epilogue_value<Acc, Out>::type;

// The epilogue of kernels that store partial sums.
struct NoEpilogue {};

// The number of columns of B per column of D: 2 if the epilogue gates.
template <typename Epilogue>
inline constexpr int kColumnsOfPair = Gates<Epilogue>::value ? 2 : 1;

// Moves rows of accumulators through shared memory, so that a lane gets neighbouring elements of a row of D. Each warp
// has a buffer of 16 rows. The pitch is 8 words more than a multiple of 16, so that writes of fragments have no bank
// conflicts.
template <typename Config, typename Acc, int Columns>
class StagedStore {
  static constexpr bool kPartial = Config::kStore == GemmStore::kPartial;
  static constexpr int kPitch = Columns + kGemmStagePad, W = kPartial ? 4 : Config::kNeighbours;
  static constexpr int kAcross = Columns / W, kPieces = 16 * kAcross;
  static_assert(W % 4 == 0 && Columns % W == 0);

 public:
  __device__ StagedStore(const GemmArgs& args, const GemmUnit& unit, uint8_t* shared, int warp)
      : args_(args),
        batch_(unit.batch),
        partial_(static_cast<Acc*>(args.partial) + unit.batch * args.p_batch + unit.split * args.p_split),
        buffer_(reinterpret_cast<Acc*>(shared) + warp * 16 * kPitch) {}

  // Passes fragments of sm80::Mma to the epilogue, or stores them as partial sums: 16 rows of D from `row` on, columns
  // from `column` on.
  template <int Blocks, typename Epilogue>
  __device__ void band(const Acc (&acc)[Blocks][4], const Epilogue& epilogue, int row, int column) const {
    const int lane = threadIdx.x % 32;
    __syncwarp();  // the previous band has been read
#pragma unroll
    for (int j = 0; j < Blocks; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        *reinterpret_cast<Neighbours<Acc, 2>*>(buffer_ + (lane / 4 + 8 * h) * kPitch + 8 * j +
                                               2 * (lane % 4)) = {{acc[j][2 * h], acc[j][2 * h + 1]}};
      }
    }
    __syncwarp();
#pragma unroll
    for (int piece = lane; piece < kPieces; piece += 32) {
      const int at = piece / kAcross, inside = piece % kAcross * W, n = args_.n - column - inside;
      if (row + at >= args_.m || n <= 0) continue;
      Acc v[W];
      load_row<4>(v, buffer_ + at * kPitch + inside, W);
      const int valid = n < W ? n : W;
      if constexpr (kPartial) {
        store_row<4>(partial_ + (row + at) * args_.p_row + column + inside, v, valid);
      } else {
        epilogue(v, batch_, row + at, column + inside, valid);
      }
    }
  }

 private:
  const GemmArgs& args_;
  int batch_;
  Acc* partial_;
  Acc* buffer_;
};

}  // namespace heddle::tile::cuda
