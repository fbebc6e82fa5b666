// Each transform alone and in short chains: all laws for all coordinates, lengths random from 0 on.
#include "tests/tile_core/testing.h"

namespace heddle::tile {
namespace {

using testing::check_laws;
using testing::pick;
using Found = std::optional<int64_t>;

constexpr int kRounds = 25;

// One transform over a packed tensor (rows, columns); the transform reads the columns.
template <typename Spec>
auto on_columns(int rows, int columns, Spec spec) {
  return transform(make_packed(rows, columns), make_tuple(pass_through(), spec), make_tuple(dims<0>{}, dims<1>{}),
                   make_tuple(dims<0>{}, dims<1>{}));
}

TEST(Transform, Naive) {
  std::mt19937 random(1);
  for (int round = 0; round < kRounds; ++round) {
    const int n[3] = {pick(random, 0, 5), pick(random, 1, 6), pick(random, 1, 16)};
    const int64_t inner = pick(random, 1, 2), row = n[2] * inner + pick(random, 0, 8), image = n[1] * row;
    check_laws(
        make_naive(make_tuple(n[0], n[1], n[2]), make_tuple(image, row, inner)),
        [=](const auto& c) -> Found { return c[0] * image + c[1] * row + c[2] * inner; }, random);
    check_laws(
        make_packed(n[0], fixed<3>(), n[2], fixed<8>()),
        [=](const auto& c) -> Found { return ((c[0] * 3 + c[1]) * n[2] + c[2]) * 8 + c[3]; }, random);
  }
}

TEST(Transform, Pad) {
  std::mt19937 random(2);
  for (int round = 0; round < kRounds; ++round) {
    const int rows = pick(random, 1, 3), columns = pick(random, 0, 16), left = pick(random, 0, 8),
              right = pick(random, 0, 8);
    const auto definition = [=](int before) {
      return [=](const auto& c) -> Found {
        const int64_t low = c[1] - before;
        return low >= 0 && low < columns ? Found(c[0] * columns + low) : std::nullopt;
      };
    };
    check_laws(on_columns(rows, columns, pad(left, right)), definition(left), random);
    check_laws(on_columns(rows, columns, left_pad(left)), definition(left), random);
    check_laws(on_columns(rows, columns, right_pad(right)), definition(0), random);
    check_laws(on_columns(rows, columns, pad(fixed<4>(), fixed<2>())), definition(4), random);
  }
}

TEST(Transform, SliceAndOffset) {
  std::mt19937 random(3);
  for (int round = 0; round < kRounds; ++round) {
    const int rows = pick(random, 1, 3), columns = pick(random, 1, 32), count = pick(random, 1, columns);
    const int step = count > 1 ? pick(random, 1, (columns - 1) / (count - 1)) : 1;
    const int begin = pick(random, 0, columns - 1 - (count - 1) * step), by = pick(random, -9, 9);
    check_laws(
        on_columns(rows, columns, slice(begin, count, step)),
        [=](const auto& c) -> Found { return c[0] * columns + begin + c[1] * step; }, random);
    check_laws(
        on_columns(rows, columns, slice(columns - 1, columns, fixed<-1>())),
        [=](const auto& c) -> Found { return c[0] * columns + columns - 1 - c[1]; }, random);
    check_laws(
        on_columns(rows, columns, offset(by)),
        [=](const auto& c) -> Found {
          const int64_t low = c[1] + by;
          return low >= 0 && low < columns ? Found(c[0] * columns + low) : std::nullopt;
        },
        random);
  }
}

TEST(Transform, FreezeInsertReplicate) {
  std::mt19937 random(4);
  for (int round = 0; round < kRounds; ++round) {
    const int rows = pick(random, 1, 6), columns = pick(random, 1, 24), at = pick(random, 0, rows - 1);
    const auto base = make_packed(rows, columns);
    check_laws(
        transform(base, make_tuple(freeze(at), pass_through()), make_tuple(dims<0>{}, dims<1>{}),
                  make_tuple(dims<>{}, dims<0>{})),
        [=](const auto& c) -> Found { return at * columns + c[0]; }, random);
    check_laws(
        transform(base, make_tuple(pass_through(), insert(3), pass_through()),
                  make_tuple(dims<0>{}, dims<>{}, dims<1>{}), make_tuple(dims<0>{}, dims<1>{}, dims<2>{})),
        [=](const auto& c) -> Found { return c[0] * columns + c[2]; }, random);
    check_laws(
        transform(base, make_tuple(replicate(2, fixed<3>()), pass_through(), pass_through()),
                  make_tuple(dims<>{}, dims<0>{}, dims<1>{}), make_tuple(dims<3, 0>{}, dims<1>{}, dims<2>{})),
        [=](const auto& c) -> Found { return c[1] * columns + c[2]; }, random);
  }
}

TEST(Transform, Modulo) {
  std::mt19937 random(5);
  for (int round = 0; round < kRounds; ++round) {
    const int rows = pick(random, 1, 3), columns = pick(random, 1, 16), count = pick(random, 0, 40);
    check_laws(
        on_columns(rows, columns, modulo(count)),
        [=](const auto& c) -> Found { return c[0] * columns + c[1] % columns; }, random);
  }
  check_laws(
      transform(make_packed(fixed<4>(), fixed<8>()), make_tuple(modulo(fixed<12>()), pass_through()),
                make_tuple(dims<0>{}, dims<1>{}), make_tuple(dims<0>{}, dims<1>{})),
      [](const auto& c) -> Found { return c[0] % 4 * 8 + c[1]; }, random);
}

TEST(Transform, Xor) {
  std::mt19937 random(6);
  for (int round = 0; round < kRounds; ++round) {
    const int rows = pick(random, 1, 20), columns = 1 << pick(random, 0, 4), stride = columns + pick(random, 0, 1) * 8;
    const auto base = make_naive(make_tuple(rows, columns), make_tuple(stride, fixed<1>()));
    check_laws(
        transform(base, make_tuple(xor_swizzle()), make_tuple(dims<0, 1>{}), make_tuple(dims<0, 1>{})),
        [=](const auto& c) -> Found { return c[0] * stride + (c[1] ^ (c[0] % columns)); }, random);
    // Rows in fours: the lowest two bits of a column stay.
    const auto by_four =
        transform(make_packed(4 * rows, fixed<16>()), make_tuple(slice(0, rows, fixed<4>()), pass_through()),
                  make_tuple(dims<0>{}, dims<1>{}), make_tuple(dims<0>{}, dims<1>{}));
    check_laws(
        transform(by_four, make_tuple(xor_swizzle()), make_tuple(dims<0, 1>{}), make_tuple(dims<0, 1>{})),
        [=](const auto& c) -> Found { return c[0] * 64 + (c[1] ^ (c[0] % 16)); }, random);
  }
}

TEST(Transform, MergeAndUnmerge) {
  std::mt19937 random(7);
  for (int round = 0; round < kRounds; ++round) {
    const int n[3] = {pick(random, 1, 5), pick(random, 1, 6), pick(random, 1, 16)};
    const int gap = pick(random, 0, 1) * pick(random, 0, 8), row = n[2] + gap,
              image = n[1] * row + pick(random, 0, 1) * 4;
    const auto base = make_naive(make_tuple(n[0], n[1], n[2]), make_tuple(image, row, fixed<1>()));
    const auto offset_of = [=](int64_t a, int64_t b, int64_t c) -> Found { return a * image + b * row + c; };
    const auto one = make_tuple(dims<0>{});
    check_laws(
        transform(base, make_tuple(merge()), make_tuple(dims<0, 1, 2>{}), one),
        [=](const auto& c) { return offset_of(c[0] / n[2] / n[1], c[0] / n[2] % n[1], c[0] % n[2]); }, random);
    check_laws(
        transform(base, make_tuple(merge()), make_tuple(dims<2, 0, 1>{}), one),
        [=](const auto& c) { return offset_of(c[0] / n[1] % n[0], c[0] % n[1], c[0] / n[1] / n[0]); }, random);
    check_laws(
        transform(base, make_tuple(merge(), pass_through()), make_tuple(dims<0, 1>{}, dims<2>{}),
                  make_tuple(dims<0>{}, dims<1>{})),
        [=](const auto& c) { return offset_of(c[0] / n[1], c[0] % n[1], c[1]); }, random);
    check_laws(
        transform(base, make_tuple(merge(), pass_through()), make_tuple(dims<1, 2>{}, dims<0>{}),
                  make_tuple(dims<1>{}, dims<0>{})),
        [=](const auto& c) { return offset_of(c[0], c[1] / n[2], c[1] % n[2]); }, random);
    check_laws(
        transform(make_packed(n[0] * 4, n[2]), make_tuple(unmerge(n[0], 2, fixed<2>()), pass_through()),
                  make_tuple(dims<0>{}, dims<1>{}), make_tuple(dims<2, 0, 1>{}, dims<3>{})),
        [=](const auto& c) -> Found { return (c[2] * 4 + c[0] * 2 + c[1]) * n[2] + c[3]; }, random);
  }
}

TEST(Transform, Embed) {
  std::mt19937 random(8);
  for (int round = 0; round < kRounds; ++round) {
    const int window = pick(random, 1, 4), outputs = pick(random, 1, 8), dilation = pick(random, 1, 3),
              stride = pick(random, 1, 4);
    const int rows = pick(random, 1, 3),
              columns = (window - 1) * dilation + (outputs - 1) * stride + 1 + pick(random, 0, 2);
    check_laws(
        transform(make_packed(rows, columns),
                  make_tuple(pass_through(), embed(make_tuple(window, outputs), make_tuple(dilation, stride))),
                  make_tuple(dims<0>{}, dims<1>{}), make_tuple(dims<0>{}, dims<1, 2>{})),
        [=](const auto& c) -> Found { return c[0] * columns + c[1] * dilation + c[2] * stride; }, random);
  }
}

TEST(Transform, IndexingReadsOnlyWhatItsTableNames) {
  std::mt19937 random(9);
  for (int round = 0; round < kRounds; ++round) {
    const int rows = pick(random, 1, 6), columns = pick(random, 1, 16);
    std::vector<int64_t> table(pick(random, 1, 9));  // exact, so that a sanitizer sees a read beyond it
    for (int64_t& row : table)
      row = random() % 5 == 0 ? int64_t(random()) - (int64_t(1) << 31) : pick(random, 0, rows - 1);
    const int count = static_cast<int>(table.size());
    const auto gathered =
        transform(make_packed(rows, columns), make_tuple(indexing(table.data(), count), pass_through()),
                  make_tuple(dims<0>{}, dims<1>{}), make_tuple(dims<0>{}, dims<1>{}));
    const auto row_of = [&](int64_t i) { return table[i] >= 0 && table[i] < rows ? Found(table[i]) : std::nullopt; };
    check_laws(
        gathered, [&](const auto& c) { return row_of(c[0]) ? Found(*row_of(c[0]) * columns + c[1]) : std::nullopt; },
        random);
    // Padding above the table: what is padded is never looked up.
    check_laws(
        transform(gathered, make_tuple(pad(2, 3), pass_through()), make_tuple(dims<0>{}, dims<1>{}),
                  make_tuple(dims<0>{}, dims<1>{})),
        [&](const auto& c) {
          const int64_t i = c[0] - 2;
          return i >= 0 && i < count && row_of(i) ? Found(*row_of(i) * columns + c[1]) : std::nullopt;
        },
        random);
  }
}

TEST(Transform, LayersOverMergedDimensions) {
  std::mt19937 random(10);
  for (int round = 0; round < kRounds; ++round) {
    const int rows = pick(random, 1, 5), columns = 4 * pick(random, 1, 4), total = rows * columns;
    const int left = pick(random, 0, 5), right = pick(random, 0, 5), shift = pick(random, -4, 4);
    const auto base = make_naive(make_tuple(rows, columns), make_tuple(columns + 4, 1));
    const auto one = make_tuple(dims<0>{});
    const auto flat = transform(base, make_tuple(merge()), make_tuple(dims<0, 1>{}), one);
    const auto padded = transform(flat, make_tuple(pad(left, right)), one, one);
    const auto shifted = transform(padded, make_tuple(offset(shift)), one, one);
    check_laws(
        transform(shifted, make_tuple(modulo(2 * (total + left + right))), one, one),
        [=](const auto& c) -> Found {
          const int64_t at = c[0] % (total + left + right) + shift, low = at - left;
          if (at < 0 || at >= total + left + right || low < 0 || low >= total) return std::nullopt;
          return low / columns * (columns + 4) + low % columns;
        },
        random);
  }
}

// Inconsistent numbers are found where the compiler cannot see them.
TEST(Transform, InconsistentChainsSaySo) {
  const auto ok = [](auto spec) { return on_columns(2, 6, spec).consistent(); };
  EXPECT_TRUE(ok(slice(2, 4)));
  EXPECT_FALSE(ok(slice(3, 4)));
  EXPECT_FALSE(ok(slice(-1, 3)));
  EXPECT_FALSE(ok(slice(2, 4, -1)));
  EXPECT_FALSE(ok(pad(-1, 2)));
  const auto frozen = [](int at) {
    return transform(make_packed(2, 6), make_tuple(pass_through(), freeze(at)), make_tuple(dims<0>{}, dims<1>{}),
                     make_tuple(dims<0>{}, dims<>{}));
  };
  EXPECT_TRUE(frozen(5).consistent());
  EXPECT_FALSE(frozen(6).consistent());
  const auto split = [](auto spec) {
    return transform(make_packed(2, 6), make_tuple(pass_through(), spec), make_tuple(dims<0>{}, dims<1>{}),
                     make_tuple(dims<0>{}, dims<1, 2>{}));
  };
  EXPECT_TRUE(split(unmerge(2, 3)).consistent());
  EXPECT_FALSE(split(unmerge(2, 2)).consistent());
  EXPECT_FALSE(split(unmerge(4, 2)).consistent());
  EXPECT_TRUE(split(embed(make_tuple(3, 4), make_tuple(1, 1))).consistent());
  EXPECT_FALSE(split(embed(make_tuple(4, 4), make_tuple(1, 1))).consistent());
  const auto swizzled =
      transform(make_packed(4, 6), make_tuple(xor_swizzle()), make_tuple(dims<0, 1>{}), make_tuple(dims<0, 1>{}));
  EXPECT_FALSE(swizzled.consistent());
  const auto flat = [](auto rows, auto columns) {
    return transform(make_packed(rows, columns), make_tuple(merge()), make_tuple(dims<0, 1>{}), make_tuple(dims<0>{}));
  };
  EXPECT_FALSE(flat(65536, 65536).consistent());
  EXPECT_TRUE(flat(int64_t(65536), 65536).consistent());
  EXPECT_EQ(flat(int64_t(65536), 65536).offset(int64_t(65536) * 65536 - 1), int64_t(65536) * 65536 - 1);
}

// The widest vector, where it is clear what it should be.
TEST(VectorLength, IsTheWidestThereIs) {
  const auto check = []<int Dim>(const auto& d, const auto& definition, index_constant<Dim>, int expected) {
    EXPECT_EQ(vector_length<Dim>(d, 64), expected);
    EXPECT_EQ((testing::widest<Dim, std::decay_t<decltype(d)>>(d, definition)), expected);
  };
  const auto one = make_tuple(dims<0>{});
  const auto flat = [&](auto... n) {
    const auto base = make_packed(n...);
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return transform(base, make_tuple(merge()), make_tuple(dims<I...>{}), one);
    }
    (std::make_integer_sequence<int, sizeof...(n)>{});
  };
  const auto identity = [](const auto& c) -> Found { return c[0]; };
  check(flat(3, 5, 7), identity, fixed<0>(), 1);
  check(flat(4, 5, 6), identity, fixed<0>(), 8);    // 120 = 8 * 15, though no row is a multiple of 8
  check(flat(16, 2, 2), identity, fixed<0>(), 64);  // groups wider than a row
  check(
      on_columns(3, 24, pad(8, 8)),
      [](const auto& c) -> Found { return c[1] >= 8 && c[1] < 32 ? Found(c[0] * 24 + c[1] - 8) : std::nullopt; },
      fixed<1>(), 8);
  check(
      on_columns(3, 24, pad(4, 4)),
      [](const auto& c) -> Found { return c[1] >= 4 && c[1] < 28 ? Found(c[0] * 24 + c[1] - 4) : std::nullopt; },
      fixed<1>(), 4);
  check(
      on_columns(3, 24, right_pad(40)),
      [](const auto& c) -> Found { return c[1] < 24 ? Found(c[0] * 24 + c[1]) : std::nullopt; }, fixed<1>(), 8);
  check(
      make_naive(make_tuple(4, 32), make_tuple(36, 1)), [](const auto& c) -> Found { return c[0] * 36 + c[1]; },
      fixed<1>(), 4);
  check(
      make_naive(make_tuple(32, 4), make_tuple(1, 32)), [](const auto& c) -> Found { return c[0] + c[1] * 32; },
      fixed<0>(), 32);
}

// What the compiler knows without values.
constexpr auto kImage = make_packed(fixed<2>(), fixed<6>(), fixed<32>());
static_assert(kImage.kStatic && !kImage.kPredicated && __is_empty(decltype(kImage)));
static_assert(is_constant<decltype(kImage.length<2>())> && kImage.length<2>() == 32);
static_assert(kImage.offset(1, 2, 3) == 192 + 64 + 3 && kImage.span() == 384);
static_assert(known_vector_length<2, decltype(kImage)>(128) == 32);
static_assert(known_vector_length<1, decltype(kImage)>(128) == 1);

constexpr auto kPadded =
    transform(kImage, make_tuple(pass_through(), pad(fixed<1>(), fixed<1>()), pass_through()),
              make_tuple(dims<0>{}, dims<1>{}, dims<2>{}), make_tuple(dims<0>{}, dims<1>{}, dims<2>{}));
static_assert(kPadded.kStatic && kPadded.kPredicated && __is_empty(decltype(kPadded)));
static_assert(is_constant<decltype(kPadded.length<1>())> && kPadded.length<1>() == 8);
static_assert(!kPadded.at(0, 0, 5).is_valid() && kPadded.at(0, 1, 5).is_valid() && !kPadded.at(0, 1, 32).inside());
static_assert(known_vector_length<2, decltype(kPadded)>(8) == 8);

// A padding of nothing, known, is no predicate.
constexpr auto kUnpadded =
    transform(kImage, make_tuple(pass_through(), right_pad(fixed<0>()), pass_through()),
              make_tuple(dims<0>{}, dims<1>{}, dims<2>{}), make_tuple(dims<0>{}, dims<1>{}, dims<2>{}));
static_assert(!kUnpadded.kPredicated);

constexpr int walk() {
  auto c = kPadded.at(0, 1, 0);
  c.move(fixed<1>(), fixed<2>(), fixed<3>());
  c.move_along<2>(-1);
  return c.offset();
}
static_assert(walk() == 192 + 2 * 32 + 2);

// Run-time lengths: types carry divisors, index types the width.
using Rows = decltype(make_packed(7, multiple_of<8>(64)));
static_assert(!Rows::kStatic && known_vector_length<1, Rows>(64) == 8 && known_vector_length<0, Rows>(64) == 1);
using Unknown = decltype(make_packed(7, 64));
static_assert(known_vector_length<1, Unknown>(64) == 1);
static_assert(sizeof(Unknown::Index) == 4 && sizeof(decltype(make_packed(7, int64_t(64)))::Index) == 8);
static_assert(sizeof(Rows) < sizeof(int) * 8);
static_assert(is_same<decltype(times(multiple_of<4>(4), fixed<6>())), multiple<24, int>>);
static_assert(is_same<decltype(plus(multiple_of<4>(4), fixed<6>())), multiple<2, int>>);
static_assert(floor_divide(-5, fixed<4>()).quotient == -2 && floor_divide(-5, fixed<4>()).rest == 3);
static_assert(floor_divide(-5, 3).quotient == -2 && floor_divide(-5, 3).rest == 1);
static_assert(floor_divide(INT32_MIN, fixed<4>()).quotient == INT32_MIN / 4);

TEST(VectorLength, PromisedDivisorsHoldForEveryValueThatKeepsThem) {
  std::mt19937 random(11);
  for (int round = 0; round < kRounds; ++round) {
    const int n = pick(random, 1, 5), c = 4 * pick(random, 1, 10);
    const auto d = make_packed(n, fixed<2>(), multiple_of<4>(c));
    static_assert(known_vector_length<2, std::decay_t<decltype(d)>>(64) == 4);
    check_laws(
        d, [=](const auto& i) -> Found { return (i[0] * 2 + i[1]) * c + i[2]; }, random);
  }
}

}  // namespace
}  // namespace heddle::tile
