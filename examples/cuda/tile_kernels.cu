// Three kernels on the block-level tile operators (tile/block): each block makes one tile of the result.
//
//   nvcc -std=c++20 -arch=sm_80 -I . -c examples/cuda/tile_kernels.cu
//
// or any other compiler of CUDA C++20: the headers need nothing but themselves.
#include "tile/block/block.h"

namespace tile = heddle::tile;
namespace block = heddle::tile::block;
using tile::dims;
using tile::half;

constexpr int kTileM = 64, kTileN = 64, kTileK = 32, kWarpsM = 2, kWarpsN = 2;

using Sums = block::mma_layout<kTileM, kTileN, kWarpsM, kWarpsN>;
// Eight elements of k, or of a row, in a thread; four lanes, or eight, finish a line.
using TileA = block::Layout<dims<kTileM, kTileK>, block::reg<8, 1, 1>, block::lane<4, 1, 8>, block::lane<8, 0, 1>,
                            block::warp<4, 0, 8>, block::reg<2, 0, 32>>;
using TileB = block::Layout<dims<kTileK, kTileN>, block::reg<8, 1, 1>, block::lane<8, 1, 8>, block::lane<4, 0, 1>,
                            block::warp<4, 0, 4>, block::reg<2, 0, 16>>;
using TileD = block::Layout<dims<kTileM, kTileN>, block::reg<8, 1, 1>, block::lane<8, 1, 8>, block::lane<4, 0, 1>,
                            block::warp<4, 0, 4>, block::reg<4, 0, 16>>;

__device__ inline float fast_gelu(float x) {
  return 0.5f * x * (1.0f + ::tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

// d = fast_gelu(a b + bias + residual): a is m x k, b k x n, row-major, k and n multiples of 8. Launched with
// (n / 64, m / 64) blocks of 128 threads, rounded up, and 32 KiB of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(128)
    gemm_add_add_gelu(half* d, const half* a, const half* b, const half* bias, const half* residual, int m, int n,
                      int k) {
  constexpr block::scratch<> kShared{};
  const int64_t row = int64_t(blockIdx.y) * kTileM, column = int64_t(blockIdx.x) * kTileN;
  auto sums = block::fill<Sums::type>(0.f);
  for (int at = 0; at < k; at += kTileK) {
    const auto of_a = block::load<TileA, 8>(block::window<3u>(a, {m, k}, {k, 1}, {row, at}), half{});
    const auto of_b = block::load<TileB, 8>(block::window<3u>(b, {k, n}, {n, 1}, {at, column}), half{});
    sums = block::dot<block::by_f16, Sums>(kShared, of_a, of_b, sums);
  }
  const auto result = block::window<3u>(d, {m, n}, {n, 1}, {row, column});
  const auto beside = block::window<3u>(residual, {m, n}, {n, 1}, {row, column});
  const auto vector = block::window<2u>(bias, {1, n}, {0, 1}, {0, column});  // the same for every row
  const auto finished = block::map(
      [](float sum, half x, half y) { return block::cast<half>(fast_gelu(sum + block::widen(x) + block::widen(y))); },
      block::convert<TileD>(kShared, sums), block::load<TileD, 8>(vector, half{}),
      block::load<TileD, 8>(beside, half{}));
  block::store<8>(result, finished);
}

// A row of up to 1024 elements.
using Row = block::Layout<dims<1024>, block::reg<4, 0, 1>, block::lane<32, 0, 4>, block::warp<4, 0, 128>,
                          block::reg<2, 0, 512>>;

// Row blockIdx.x of y = softmax(x), rows of n elements. 128 threads, 1 KiB of shared memory.
extern "C" __global__ void __launch_bounds__(128) softmax(float* y, const float* x, int n) {
  const int64_t first = int64_t(blockIdx.x) * n;
  const auto v = block::load<Row>(block::window<1u>(x + first, {n}, {1}, {0}), -__builtin_inff());
  const float most = block::reduce<0>(block::scratch<0>{}, block::max_of{}, v);
  const auto e = block::map([=](float a) { return block::exp_fast(a - most); }, v);
  // Another part of shared memory: no barrier is needed in front of it.
  const float sum = block::reduce<0>(block::scratch<512, false>{}, block::sum_of{}, e);
  block::store(block::window<1u>(y + first, {n}, {1}, {0}), block::map([=](float a) { return a / sum; }, e));
}

// Row blockIdx.x of y = (x - mean) / sqrt(variance + epsilon) * scale + shift. 128 threads, 1 KiB of shared memory.
extern "C" __global__ void __launch_bounds__(128)
    layer_norm(float* y, const float* x, const float* scale, const float* shift, int n, float epsilon) {
  const auto part = [=](auto* of) { return block::window<1u>(of, {n}, {1}, {0}); };
  const int64_t first = int64_t(blockIdx.x) * n;
  const auto v = block::load<Row>(part(x + first), 0.f);
  const float mean = block::reduce<0>(block::scratch<0>{}, block::sum_of{}, v) / n;
  const auto square =
      block::map([=](float a, int at) { return at < n ? (a - mean) * (a - mean) : 0.f; }, v, block::iota<Row>(0));
  const float variance = block::reduce<0>(block::scratch<512, false>{}, block::sum_of{}, square) / n;
  const float factor = ::rsqrtf(variance + epsilon);
  block::store(part(y + first), block::map([=](float a, float s, float t) { return (a - mean) * factor * s + t; }, v,
                                           block::load<Row>(part(scale), 0.f), block::load<Row>(part(shift), 0.f)));
}
