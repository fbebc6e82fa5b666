// Four kernels on the block-level tile operators (tile/block): each block makes one tile of the result.
//
//   nvcc -std=c++20 -arch=sm_80 -I PREFIX/include/heddle-tile -c tile_kernels.cu
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

constexpr int kHead = 64, kQueries = 64, kKeys = 64;

// A warp has 16 whole rows of scores, so that their maxima and sums need no shared memory.
using Scores = block::mma_layout<kQueries, kKeys, 4, 1>;
using OfRows = block::slice_t<Scores::type, 1>;
// Eight neighbours of the head in a thread: along the rows of queries and values, along the columns of keys.
using Rows = block::Layout<dims<64, kHead>, block::reg<8, 1, 1>, block::lane<8, 1, 8>, block::lane<4, 0, 1>,
                           block::warp<4, 0, 4>, block::reg<4, 0, 16>>;
using Columns = block::permute_t<Rows, 1, 0>;

// For every column of scores what belongs to its row.
template <typename S>
__device__ inline auto along_rows(S shared, const block::Tile<float, OfRows>& x) {
  const auto column = block::convert<block::squeeze_t<Scores::type, 1>>(shared, block::expand<1>(x));
  return block::broadcast<Scores::type, 1>(column);
}

// out = softmax(q k^T * scale) v of heads of n rows of 64 elements; `scale` has a factor of log2(e). Launched with
// (n / 64 rounded up, heads) blocks of 128 threads and 32 KiB of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(128)
    attention(half* out, const half* q, const half* k, const half* v, int n, float scale) {
  constexpr block::scratch<> kShared{};
  const float none = -__builtin_inff();
  const int64_t head = int64_t(blockIdx.y) * n * kHead, row = int64_t(blockIdx.x) * kQueries;
  const auto rows = [=](auto* of, int64_t at) { return block::window<1u>(of + head, {n, kHead}, {kHead, 1}, {at, 0}); };
  const auto queries = block::load<Rows, 8>(rows(q, row), half{});
  auto most = block::fill<OfRows>(none), total = block::fill<OfRows>(0.f);
  auto sums = block::fill<Scores::type>(0.f);
  for (int at = 0; at < n; at += kKeys) {
    const auto keys = block::load<Columns, 8>(block::window<2u>(k + head, {kHead, n}, {1, kHead}, {0, at}), half{});
    const auto values = block::load<Rows, 8>(rows(v, at), half{});
    const auto products = block::dot<block::by_f16, Scores>(kShared, queries, keys, block::fill<Scores::type>(0.f));
    const auto scores = block::map([=](float x, int column) { return at + column < n ? x * scale : none; }, products,
                                   block::iota<Scores::type, 1>(0));
    const auto larger = block::map([](float a, float b) { return block::max(a, b); }, most,
                                   block::reduce<1>(kShared, block::max_of{}, scores));
    const auto weights =
        block::map([](float x, float m) { return ::exp2f(x - m); }, scores, along_rows(kShared, larger));
    const auto kept = block::map([](float before, float m) { return ::exp2f(before - m); }, most, larger);
    total = block::map([](float t, float f, float s) { return t * f + s; }, total, kept,
                       block::reduce<1>(kShared, block::sum_of{}, weights));
    sums = block::map([](float s, float f) { return s * f; }, sums, along_rows(kShared, kept));
    sums = block::dot<block::by_f16, Scores>(kShared, block::map([](float x) { return block::cast<half>(x); }, weights),
                                             values, sums);
    most = larger;
  }
  const auto finished =
      block::map([](float s, float t) { return block::cast<half>(s / t); }, sums, along_rows(kShared, total));
  block::store<8>(rows(out, row), block::convert<Rows>(kShared, finished));
}
