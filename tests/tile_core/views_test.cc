// Operators written as views, against loops written without them.
#include "tests/tile_core/testing.h"

namespace heddle::tile {
namespace {

using testing::check_laws;
using testing::numbered;
using testing::pick;
using Found = std::optional<int64_t>;

struct Window {
  int in, kernel, stride, dilation, low, high;
  int out() const { return (in + low + high - (kernel - 1) * dilation - 1) / stride + 1; }
  // Input index of a tap, nothing in the padding.
  Found input(int64_t output, int64_t tap) const {
    const int64_t i = output * stride + tap * dilation - low;
    return i >= 0 && i < in ? Found(i) : std::nullopt;
  }
};

Window random_window(std::mt19937& random) {
  Window w = {pick(random, 1, 6), pick(random, 1, 3), pick(random, 1, 2),
              pick(random, 1, 2), pick(random, 0, 2), pick(random, 0, 2)};
  while (w.in + w.low + w.high < (w.kernel - 1) * w.dilation + 1) ++w.in;
  return w;
}

auto padding(const Window& w) {
  return pad(w.low, w.high);
}
auto taps(const Window& w) {
  return embed(make_tuple(w.kernel, w.out()), make_tuple(w.dilation, w.stride));
}

// Images [n][x][c] as a matrix (n, output) x (tap, c).
template <typename C>
auto im2col_1d(int n, const Window& x, C c) {
  const auto padded =
      transform(make_packed(n, x.in, c), make_tuple(pass_through(), padding(x), pass_through()),
                make_tuple(dims<0>{}, dims<1>{}, dims<2>{}), make_tuple(dims<0>{}, dims<1>{}, dims<2>{}));
  const auto windows =
      transform(padded, make_tuple(pass_through(), taps(x), pass_through()),
                make_tuple(dims<0>{}, dims<1>{}, dims<2>{}), make_tuple(dims<0>{}, dims<2, 1>{}, dims<3>{}));
  return transform(windows, make_tuple(merge(), merge()), make_tuple(dims<0, 1>{}, dims<2, 3>{}),
                   make_tuple(dims<0>{}, dims<1>{}));
}

template <typename C>
auto im2col_2d(int n, const Window& y, const Window& x, C c) {
  constexpr auto same = make_tuple(dims<0>{}, dims<1>{}, dims<2>{}, dims<3>{});
  const auto padded = transform(make_packed(n, y.in, x.in, c),
                                make_tuple(pass_through(), padding(y), padding(x), pass_through()), same, same);
  const auto windows = transform(padded, make_tuple(pass_through(), taps(y), taps(x), pass_through()), same,
                                 make_tuple(dims<0>{}, dims<3, 1>{}, dims<4, 2>{}, dims<5>{}));
  return transform(windows, make_tuple(merge(), merge()), make_tuple(dims<0, 1, 2>{}, dims<3, 4, 5>{}),
                   make_tuple(dims<0>{}, dims<1>{}));
}

template <typename C>
auto im2col_3d(int n, const Window& z, const Window& y, const Window& x, C c) {
  constexpr auto same = make_tuple(dims<0>{}, dims<1>{}, dims<2>{}, dims<3>{}, dims<4>{});
  const auto padded =
      transform(make_packed(n, z.in, y.in, x.in, c),
                make_tuple(pass_through(), padding(z), padding(y), padding(x), pass_through()), same, same);
  const auto windows = transform(padded, make_tuple(pass_through(), taps(z), taps(y), taps(x), pass_through()), same,
                                 make_tuple(dims<0>{}, dims<4, 1>{}, dims<5, 2>{}, dims<6, 3>{}, dims<7>{}));
  return transform(windows, make_tuple(merge(), merge()), make_tuple(dims<0, 1, 2, 3>{}, dims<4, 5, 6, 7>{}),
                   make_tuple(dims<0>{}, dims<1>{}));
}

TEST(Views, Im2col1d) {
  std::mt19937 random(21);
  for (int round = 0; round < 20; ++round) {
    const Window x = random_window(random);
    const int n = pick(random, 1, 3), c = pick(random, 1, 8);
    check_laws(
        im2col_1d(n, x, c),
        [=](const auto& at) -> Found {
          const Found i = x.input(at[0] % x.out(), at[1] / c);
          return i ? Found((at[0] / x.out() * x.in + *i) * c + at[1] % c) : std::nullopt;
        },
        random);
  }
}

TEST(Views, Im2col2d) {
  std::mt19937 random(22);
  for (int round = 0; round < 10; ++round) {
    const Window y = random_window(random), x = random_window(random);
    const int n = pick(random, 1, 2), c = 8 * pick(random, 1, 2);
    const auto d = im2col_2d(n, y, x, multiple_of<8>(c));
    static_assert(known_vector_length<1, std::decay_t<decltype(d)>>(64) == 8);
    check_laws(
        d,
        [=](const auto& at) -> Found {
          const int64_t out_x = at[0] % x.out(), out_y = at[0] / x.out() % y.out(), image = at[0] / x.out() / y.out();
          const Found i = y.input(out_y, at[1] / c / x.kernel), j = x.input(out_x, at[1] / c % x.kernel);
          return i && j ? Found(((image * y.in + *i) * x.in + *j) * c + at[1] % c) : std::nullopt;
        },
        random);
  }
}

TEST(Views, Im2col3d) {
  std::mt19937 random(23);
  for (int round = 0; round < 4; ++round) {
    Window w[3] = {random_window(random), random_window(random), random_window(random)};
    const int n = pick(random, 1, 2), c = pick(random, 1, 4);
    check_laws(
        im2col_3d(n, w[0], w[1], w[2], c),
        [=](const auto& at) -> Found {
          int64_t output = at[0], tap = at[1] / c, stride = 1, offset = 0;
          for (int d = 2; d >= 0; --d) {
            const Found i = w[d].input(output % w[d].out(), tap % w[d].kernel);
            if (!i) return std::nullopt;
            offset += *i * stride;
            stride *= w[d].in, output /= w[d].out(), tap /= w[d].kernel;
          }
          return (output * stride + offset) * c + at[1] % c;
        },
        random);
  }
}

// A convolution as the GEMM that a kernel does: rows by coordinates that only move.
TEST(Views, ConvolutionThroughCoordinates) {
  std::mt19937 random(24);
  const Window y = {7, 3, 2, 1, 1, 1}, x = {5, 3, 1, 2, 2, 2};
  const int n = 2, c = 3, o = 4, k = y.kernel * x.kernel * c;
  const std::vector<float> image = numbered(n * y.in * x.in * c), filter = numbered(k * o);
  const auto a = make_view(image.data(), im2col_2d(n, y, x, c));
  const int rows = a.chain.length<0>();
  ASSERT_EQ(rows, n * y.out() * x.out());
  ASSERT_EQ(a.chain.length<1>(), k);
  auto row = a.at(0, 0);
  for (int m = 0; m < rows; ++m, row.move(fixed<1>(), fixed<0>())) {
    const int image_index = m / (y.out() * x.out()), out_y = m / x.out() % y.out(), out_x = m % x.out();
    for (int channel = 0; channel < o; ++channel) {
      float sum = 0, expected = 0;
      auto at = row;
      for (int i = 0; i < k; ++i, at.move_along<1>(fixed<1>())) sum += a.load(at, 0.f) * filter[i * o + channel];
      for (int i = 0; i < k; ++i) {
        const Found in_y = y.input(out_y, i / c / x.kernel), in_x = x.input(out_x, i / c % x.kernel);
        if (!in_y || !in_x) continue;
        expected += image[((image_index * y.in + *in_y) * x.in + *in_x) * c + i % c] * filter[i * o + channel];
      }
      ASSERT_EQ(sum, expected) << m << " " << channel;
    }
  }
}

// Images [n][c][y][x]: a row of the reduction is an output, its columns are the window.
TEST(Views, PoolingWindows) {
  std::mt19937 random(25);
  for (int round = 0; round < 10; ++round) {
    const Window y = random_window(random), x = random_window(random);
    const int n = pick(random, 1, 2), c = pick(random, 1, 3);
    constexpr auto same = make_tuple(dims<0>{}, dims<1>{}, dims<2>{}, dims<3>{});
    const auto padded = transform(make_packed(n, c, y.in, x.in),
                                  make_tuple(pass_through(), pass_through(), padding(y), padding(x)), same, same);
    const auto windows = transform(padded, make_tuple(pass_through(), pass_through(), taps(y), taps(x)), same,
                                   make_tuple(dims<0>{}, dims<1>{}, dims<4, 2>{}, dims<5, 3>{}));
    const auto matrix = transform(windows, make_tuple(merge(), merge()), make_tuple(dims<0, 1, 2, 3>{}, dims<4, 5>{}),
                                  make_tuple(dims<0>{}, dims<1>{}));
    check_laws(
        matrix,
        [=](const auto& at) -> Found {
          const Found i = y.input(at[0] / x.out() % y.out(), at[1] / x.kernel),
                      j = x.input(at[0] % x.out(), at[1] % x.kernel);
          return i && j ? Found((at[0] / x.out() / y.out() * y.in + *i) * x.in + *j) : std::nullopt;
        },
        random);
  }
}

// Depth to space, [n][y][x][(b, b, c)] as [n][(y, b)][(x, b)][c], and back. A transform of the input's view only.
template <typename C>
auto depth_to_space(int n, int y, int x, int b, C c) {
  const auto split = transform(make_packed(n, y, x, times(b * b, c)),
                               make_tuple(pass_through(), pass_through(), pass_through(), unmerge(b, b, c)),
                               make_tuple(dims<0>{}, dims<1>{}, dims<2>{}, dims<3>{}),
                               make_tuple(dims<0>{}, dims<1>{}, dims<2>{}, dims<3, 4, 5>{}));
  return transform(split, make_tuple(pass_through(), merge(), merge(), pass_through()),
                   make_tuple(dims<0>{}, dims<1, 3>{}, dims<2, 4>{}, dims<5>{}),
                   make_tuple(dims<0>{}, dims<1>{}, dims<2>{}, dims<3>{}));
}

TEST(Views, DepthToSpaceAndBack) {
  std::mt19937 random(26);
  for (int round = 0; round < 8; ++round) {
    const int n = pick(random, 1, 2), y = pick(random, 1, 3), x = pick(random, 1, 3), b = pick(random, 1, 3),
              c = pick(random, 1, 8);
    check_laws(
        depth_to_space(n, y, x, b, c),
        [=](const auto& at) -> Found {
          const int64_t depth = (at[1] % b * b + at[2] % b) * c + at[3];
          return ((at[0] * y + at[1] / b) * x + at[2] / b) * b * b * c + depth;
        },
        random);
    // Space to depth reads [n][(y, b)][(x, b)][c].
    const auto split = transform(make_packed(n, y * b, x * b, c),
                                 make_tuple(pass_through(), unmerge(y, b), unmerge(x, b), pass_through()),
                                 make_tuple(dims<0>{}, dims<1>{}, dims<2>{}, dims<3>{}),
                                 make_tuple(dims<0>{}, dims<1, 3>{}, dims<2, 4>{}, dims<5>{}));
    const auto deep = transform(split, make_tuple(pass_through(), pass_through(), pass_through(), merge()),
                                make_tuple(dims<0>{}, dims<1>{}, dims<2>{}, dims<3, 4, 5>{}),
                                make_tuple(dims<0>{}, dims<1>{}, dims<2>{}, dims<3>{}));
    check_laws(
        deep,
        [=](const auto& at) -> Found {
          const int64_t row = at[1] * b + at[3] / c / b, column = at[2] * b + at[3] / c % b;
          return ((at[0] * y * b + row) * x * b + column) * c + at[3] % c;
        },
        random);
  }
}

// Nearest-neighbour upsampling: an index that memory does not have, merged with one that it has.
TEST(Views, UpsamplingRepeatsPixels) {
  std::mt19937 random(27);
  const auto repeated =
      transform(make_packed(5, 8), make_tuple(pass_through(), insert(3), pass_through()),
                make_tuple(dims<0>{}, dims<>{}, dims<1>{}), make_tuple(dims<0>{}, dims<1>{}, dims<2>{}));
  const auto larger = transform(repeated, make_tuple(merge(), pass_through()), make_tuple(dims<0, 1>{}, dims<2>{}),
                                make_tuple(dims<0>{}, dims<1>{}));
  check_laws(
      larger, [](const auto& at) -> Found { return at[0] / 3 * 8 + at[1]; }, random);
}

// Group normalisation of [n][pixel][(group, c)]: rows (n, group), columns (pixel, c).
TEST(Views, GroupNormRows) {
  std::mt19937 random(28);
  for (int round = 0; round < 10; ++round) {
    const int n = pick(random, 1, 3), pixels = pick(random, 1, 6), groups = pick(random, 1, 4),
              c = 4 * pick(random, 1, 3);
    const auto split =
        transform(make_packed(n, pixels, groups * c),
                  make_tuple(pass_through(), pass_through(), unmerge(groups, multiple_of<4>(c))),
                  make_tuple(dims<0>{}, dims<1>{}, dims<2>{}), make_tuple(dims<0>{}, dims<1>{}, dims<2, 3>{}));
    const auto rows = transform(split, make_tuple(merge(), merge()), make_tuple(dims<0, 2>{}, dims<1, 3>{}),
                                make_tuple(dims<0>{}, dims<1>{}));
    check_laws(
        rows,
        [=](const auto& at) -> Found {
          return ((at[0] / groups * pixels + at[1] / c) * groups + at[0] % groups) * c + at[1] % c;
        },
        random);
    // One group alone is the row itself: the columns of an image lie packed.
    if (groups == 1) {
      EXPECT_EQ(vector_length<1>(rows, 1 << 10), power_of_two_in(pixels * c));
    }
  }
}

// Attention scores: operands [b][s][h][d] as batches (b, h), the second one transposed; and the result written
// [b][h][s][t].
TEST(Views, PermutedBatchedGemm) {
  const int b = 2, s = 5, t = 4, h = 3, d = 8;
  const std::vector<float> q = numbered(b * s * h * d), k = numbered(b * t * h * d);
  const auto heads = [&](int length) {
    return transform(permute<0, 2, 1, 3>(make_packed(b, length, h, fixed<8>())),
                     make_tuple(merge(), pass_through(), pass_through()),
                     make_tuple(dims<0, 1>{}, dims<2>{}, dims<3>{}), make_tuple(dims<0>{}, dims<1>{}, dims<2>{}));
  };
  const auto left = make_view(q.data(), heads(s));
  const auto right = make_view(k.data(), permute<0, 2, 1>(heads(t)));
  EXPECT_EQ(vector_length<2>(left.chain, 64), 8);
  EXPECT_EQ(vector_length<1>(right.chain, 64), 8);
  EXPECT_EQ(vector_length<2>(right.chain, 64), 1);
  for (int batch = 0; batch < b * h; ++batch) {
    for (int i = 0; i < s; ++i) {
      for (int j = 0; j < t; ++j) {
        float sum = 0, expected = 0;
        auto l = left.at(batch, i, 0);
        auto r = right.at(batch, 0, j);
        for (int e = 0; e < d; ++e) {
          sum += left[l] * right[r];
          l.move(0, 0, 1);
          r.move(0, 1, 0);
          expected +=
              q[((batch / h * s + i) * h + batch % h) * d + e] * k[((batch / h * t + j) * h + batch % h) * d + e];
        }
        ASSERT_EQ(sum, expected);
      }
    }
  }
}

// A tile of 16-bit elements in shared memory: chunks of 8 elements (16 bytes), chunk ^ row. With rows of 64 bytes two
// rows share the 32 banks, so the row counts in pairs.
template <int Rows, int Columns>
constexpr auto swizzled_tile() {
  constexpr int chunks = Columns / 8, pairs = chunks >= 8 ? 1 : 8 / chunks;
  const auto split =
      transform(make_packed(fixed<Rows>(), fixed<Columns>()),
                make_tuple(unmerge(fixed<Rows / pairs>(), fixed<pairs>()), unmerge(fixed<chunks>(), fixed<8>())),
                make_tuple(dims<0>{}, dims<1>{}), make_tuple(dims<0, 1>{}, dims<2, 3>{}));
  const auto mixed =
      transform(split, make_tuple(xor_swizzle(), pass_through(), pass_through()),
                make_tuple(dims<0, 2>{}, dims<1>{}, dims<3>{}), make_tuple(dims<0, 2>{}, dims<1>{}, dims<3>{}));
  return transform(mixed, make_tuple(merge(), merge()), make_tuple(dims<0, 1>{}, dims<2, 3>{}),
                   make_tuple(dims<0>{}, dims<1>{}));
}

// Eight 16-byte accesses of one phase (ldmatrix, or a quarter warp's loads) hit every bank once.
template <typename D, typename F>
bool free_of_conflicts(const D& d, F coordinate) {
  std::array<bool, 32> hit = {};
  for (int lane = 0; lane < 8; ++lane) {
    const auto [row, column] = coordinate(lane);
    const int bank = d.offset(row, column) * 2 / 4 % 32;
    for (int i = 0; i < 4; ++i) {
      if (std::exchange(hit[bank + i], true)) return false;
    }
  }
  return true;
}

template <int Rows, int Columns>
void check_swizzle() {
  constexpr auto d = swizzled_tile<Rows, Columns>();
  using D = std::decay_t<decltype(d)>;
  static_assert(D::kStatic && __is_empty(D) && !D::kPredicated);
  static_assert(known_vector_length<1, D>(64) == 8);
  static_assert(d.template length<0>() == Rows && d.template length<1>() == Columns);
  std::vector<bool> used(Rows * Columns);
  for (int row = 0; row < Rows; ++row) {
    for (int column = 0; column < Columns; ++column) {
      const int offset = d.offset(row, column);
      ASSERT_TRUE(offset >= 0 && offset < Rows * Columns && !used[offset]);
      used[offset] = true;
      ASSERT_EQ(offset / Columns, row);
    }
  }
  for (int row = 0; row < Rows; row += 8) {
    for (int column = 0; column < Columns; column += 8) {
      EXPECT_TRUE(free_of_conflicts(d, [&](int lane) { return std::pair(row + lane, column); }))
          << row << " " << column;
    }
  }
  // Stores of whole rows stay free of conflicts, too.
  for (int first = 0; first < Rows * Columns; first += 64) {
    EXPECT_TRUE(free_of_conflicts(
        d, [&](int lane) { return std::pair((first + lane * 8) / Columns, (first + lane * 8) % Columns); }));
  }
}

TEST(Views, SwizzledTilesHaveNoBankConflicts) {
  check_swizzle<64, 64>();
  check_swizzle<32, 32>();
  check_swizzle<16, 128>();
  check_swizzle<64, 16>();
  const auto plain = make_packed(64, 64);
  EXPECT_FALSE(free_of_conflicts(plain, [](int lane) { return std::pair(lane, 0); }));
}

// The stages of a pipeline: the loop counts on, memory repeats.
TEST(Views, RingOfStages) {
  std::mt19937 random(29);
  const auto ring = transform(make_packed(fixed<3>(), fixed<4>(), fixed<16>()),
                              make_tuple(modulo(20), pass_through(), pass_through()),
                              make_tuple(dims<0>{}, dims<1>{}, dims<2>{}), make_tuple(dims<0>{}, dims<1>{}, dims<2>{}));
  check_laws(
      ring, [](const auto& at) -> Found { return at[0] % 3 * 64 + at[1] * 16 + at[2]; }, random);
  EXPECT_EQ(vector_length<2>(ring, 64), 16);
}

// Rows of an embedding table; a column tail padded so that vectors stay whole.
TEST(Views, GatherOfRows) {
  std::mt19937 random(30);
  const int rows = 11, columns = 24;
  const std::vector<int32_t> tokens = {3, 10, 0, 3, -1, 11, 7};
  const auto gathered = transform(make_packed(rows, columns), make_tuple(indexing(tokens.data(), 7), right_pad(8)),
                                  make_tuple(dims<0>{}, dims<1>{}), make_tuple(dims<0>{}, dims<1>{}));
  check_laws(
      gathered,
      [&](const auto& at) {
        const int64_t row = tokens[at[0]];
        return row >= 0 && row < rows && at[1] < columns ? Found(row * columns + at[1]) : std::nullopt;
      },
      random);
  EXPECT_EQ(vector_length<1>(gathered, 64), 8);
  std::vector<float> table = numbered(rows * columns);
  const auto view = make_view(table.data(), gathered);
  EXPECT_EQ(view.load(view.at(1, 5), -1.f), table[10 * columns + 5]);
  EXPECT_EQ(view.load(view.at(4, 5), -1.f), -1.f);
  view.store(view.at(5, 0), 0.f);  // no such row
  EXPECT_EQ(table, numbered(rows * columns));
  view.store(view.at(0, 1), 0.f);
  EXPECT_EQ(table[3 * columns + 1], 0.f);
}

}  // namespace
}  // namespace heddle::tile
