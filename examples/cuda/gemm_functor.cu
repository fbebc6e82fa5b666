// D = fast_gelu(A B + bias + residual) by a template of the library: a configuration with named fields, two operands as
// views, and a functor for what happens to the sums. The other three levels: fused_gemm.cc calls a finished operator,
// tile_kernels.cu writes the kernel on operators of tiles, examples/python/tile/fused_gemm.py in Python.
//
//   nvcc -std=c++20 -arch=sm_80 -I PREFIX/include/heddle-tile -c gemm_functor.cu
#include "tile/kernel/cuda/gemm/sm80.h"
#include "tile/kernel/cuda/operand/operand.h"
#include "tile/kernel/cuda/row.h"

namespace gemm_functor {

using heddle::tile::fixed;
using heddle::tile::half;
using heddle::tile::make_naive;
using heddle::tile::make_tuple;
using heddle::tile::make_view;
using heddle::tile::multiple_of;

struct Config {
  using InA = half;
  using InB = half;
  static constexpr int kNeighbours = 8;
  static constexpr int kTileM = 64, kTileN = 64, kTileK = 32, kWarpsM = 2, kWarpsN = 2, kStages = 3;
  static constexpr auto kStore = heddle::tile::GemmStore::kEpilogue;
};

// A, m x k and row-major, as [row][k]. k is a multiple of 8: pieces of 16 bytes are copied.
struct OperandA {
  using Element = half;
  const half* data;
  int32_t m, k;
  __device__ auto view(int) const {
    return make_view(data, make_naive(make_tuple(m, multiple_of<8>(k)), make_tuple(multiple_of<8>(k), fixed<1>())));
  }
};

// B, k x n and row-major, as [column][k]: the same memory with its dimensions exchanged.
struct OperandB {
  using Element = half;
  const half* data;
  int32_t n, k;
  __device__ auto view(int) const {
    return make_view(data, make_naive(make_tuple(multiple_of<8>(n), k), make_tuple(fixed<1>(), multiple_of<8>(n))));
  }
};

// Called for W neighbours of a row of sums, of which n are inside of D.
struct AddAddFastGelu {
  half* d;
  const half *bias, *residual;
  int64_t columns;

  template <typename T, int W>
  __device__ void operator()(T (&v)[W], int /*batch*/, int row, int column, int n) const {
    const int64_t at = row * columns + column;
    half x[W], y[W], result[W];
    heddle::tile::cuda::load_row<W>(x, bias + column, n);
    heddle::tile::cuda::load_row<W>(y, residual + at, n);
#pragma unroll
    for (int i = 0; i < W; ++i) {
      const float sum = v[i] + heddle::tile::cuda::to_float(x[i]) + heddle::tile::cuda::to_float(y[i]);
      const float gelu = 0.5f * sum * (1.0f + ::tanhf(0.7978845608f * (sum + 0.044715f * sum * sum * sum)));
      result[i] = heddle::tile::cuda::from_float<half>(gelu);
    }
    heddle::tile::cuda::store_row<W>(d + at, result, n);
  }
};

}  // namespace gemm_functor

// The host fills GemmArgs (tile/core/cuda_gemm.h): m, n, k, batch = 1, tiles_m = ceil(m / 64), tiles_n = ceil(n / 64),
// k_tiles = ceil(k / 32), splits = 1, raster_group = 8, then set_divisors(). Launched with tiles_m * tiles_n blocks of
// 128 threads and gemm_sm80_shared_bytes(64, 64, 64, 3, 2, 2) bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(128)
    gemm_functor_kernel(heddle::tile::GemmArgs args, heddle::tile::half* d, const heddle::tile::half* a,
                        const heddle::tile::half* b, const heddle::tile::half* bias,
                        const heddle::tile::half* residual) {
  namespace own = gemm_functor;
  heddle::tile::sm80::gemm<own::Config>(args, own::OperandA{a, args.m, args.k}, own::OperandB{b, args.n, args.k},
                                        own::AddAddFastGelu{d, bias, residual, args.n});
}
