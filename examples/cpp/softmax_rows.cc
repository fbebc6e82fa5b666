// Softmax of rows on the vectors of a CPU, by the header library alone: Heddle::tile of CMake, or
//   c++ -std=c++20 -O2 -march=native -fno-math-errno -I PREFIX/include/heddle-tile softmax_rows.cc -o softmax_rows
// One text serves AVX-512, AVX2 and plain vectors, as the compiler's flags say.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tile/op/lanes.h"
#include "tile/op/math.h"
#include "tile/op/reduce.h"

namespace tile = heddle::tile;

// y = softmax(x), n elements. Bodies of loops see W elements at a time, and at the end of the row fewer.
void softmax(float* y, const float* x, int64_t n) {
  constexpr int W = tile::kLanes;
  tile::accumulator<tile::max_of, float, W, 1> most;
  tile::for_lanes_unrolled<W, 1>(
      0, n, [&]<int V>(int64_t i, auto count, auto part) { most.add(tile::fetch<V>(x + i, count), count, part); });
  const auto largest = tile::splat<W>(most.result().v);
  tile::accumulator<tile::sum_of, float, W, 1> sum;
  tile::for_lanes_unrolled<W, 1>(0, n, [&]<int V>(int64_t i, auto count, auto part) {
    const auto weight = tile::exp(tile::fetch<V>(x + i, count) - largest);
    sum.add(weight, count, part);
    tile::put(y + i, weight, count);
  });
  const auto factor = tile::splat<W>(1.0f / sum.result().v);
  tile::for_lanes<W>(
      0, n, [&]<int V>(int64_t i, auto count) { tile::put(y + i, tile::fetch<V>(y + i, count) * factor, count); });
}

int main() {
  constexpr int64_t kElements = 1003;
  std::vector<float> x(kElements), y(kElements);
  for (int64_t i = 0; i < kElements; ++i) x[i] = static_cast<float>(i * 37 % 101) / 16;
  softmax(y.data(), x.data(), kElements);
  double sum = 0, worst = 0;
  for (const float v : x) sum += std::exp(static_cast<double>(v));
  for (int64_t i = 0; i < kElements; ++i)
    worst = std::fmax(worst, std::fabs(y[i] * sum / std::exp(static_cast<double>(x[i])) - 1));
  std::printf("output: %.3g %.3g, off by %.1e\n", y[0], y[1], worst);
  return worst < 1e-5 ? 0 : 1;
}
