// The laws of views, checked for every coordinate against a definition written without them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tile/core/view.h"

namespace heddle::tile::testing {

template <typename D>
using Coordinates = std::array<int64_t, D::kDims>;
// Offset of an index within the lengths; nothing where it has no element.
template <typename D>
using Definition = std::function<std::optional<int64_t>(const Coordinates<D>&)>;

template <typename D>
Coordinates<D> lengths_of(const D& d) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return Coordinates<D>{static_cast<int64_t>(d.template length<I>())...};
  }
  (std::make_index_sequence<D::kDims>{});
}

template <typename D>
Coordinate<D> at(const D& d, const Coordinates<D>& c) {
  return std::apply([&](auto... i) { return d.at(i...); }, c);
}

// Calls f for every coordinate of a box that reaches `margin` beyond the lengths.
template <size_t N, typename F>
void for_box(const std::array<int64_t, N>& lengths, int64_t margin, F f) {
  for (const int64_t n : lengths) {
    if (n + 2 * margin <= 0) return;
  }
  std::array<int64_t, N> c;
  c.fill(-margin);
  while (true) {
    f(c);
    int d = static_cast<int>(N) - 1;
    while (d >= 0 && ++c[d] == lengths[d] + margin) c[d--] = -margin;
    if (d < 0) return;
  }
}

template <size_t N>
std::string text(const std::array<int64_t, N>& c) {
  std::string s = "(";
  for (const int64_t i : c) s += std::to_string(i) + " ";
  return s + ")";
}

template <size_t N>
bool within(const std::array<int64_t, N>& c, const std::array<int64_t, N>& lengths) {
  for (size_t i = 0; i < N; ++i) {
    if (c[i] < 0 || c[i] >= lengths[i]) return false;
  }
  return true;
}

// Whether groups of `width` along `dim` are contiguous, aligned and valid as a whole: the definition of a vector.
template <typename D>
bool is_vector(const D& d, const Definition<D>& definition, int dim, int width) {
  Coordinates<D> groups = lengths_of(d);
  if (groups[dim] % width != 0) return false;
  groups[dim] /= width;
  bool good = true;
  for_box(groups, 0, [&](Coordinates<D> c) {
    if (!good) return;
    c[dim] *= width;
    const std::optional<int64_t> first = definition(c);
    if (first && *first % width != 0) good = false;
    for (int i = 1; i < width; ++i) {
      ++c[dim];
      const std::optional<int64_t> next = definition(c);
      if (next.has_value() != first.has_value() || (first && *next != *first + i)) good = false;
    }
  });
  return good;
}

// The widest vector, up to 64, that the definition allows.
template <int Dim, typename D>
int widest(const D& d, const Definition<D>& definition) {
  int width = 64;
  while (width > 1 && !is_vector(d, definition, Dim, width)) width /= 2;
  return width;
}

template <typename D>
void check_offsets(const D& d, const Definition<D>& definition) {
  const Coordinates<D> lengths = lengths_of(d);
  for_box(lengths, 2, [&](const Coordinates<D>& c) {
    const Coordinate<D> here = at(d, c);
    const std::optional<int64_t> expected = within(c, lengths) ? definition(c) : std::nullopt;
    ASSERT_EQ(here.is_valid(), expected.has_value()) << text(c);
    if (!expected) return;
    ASSERT_EQ(here.offset(), *expected) << text(c);
    ASSERT_TRUE(here.offset() < d.span()) << text(c);
  });
}

// Steps in all directions, also out of the lengths and back: updates find what a computation from scratch finds.
template <typename D>
void check_moves(const D& d, std::mt19937& random) {
  const Coordinates<D> lengths = lengths_of(d);
  for (int walk = 0; walk < 20; ++walk) {
    Coordinates<D> c;
    for (int i = 0; i < D::kDims; ++i) c[i] = static_cast<int64_t>(random() % (lengths[i] + 4)) - 2;
    Coordinate<D> moving = at(d, c);
    for (int step = 0; step < 20; ++step) {
      Coordinates<D> by;
      for (int i = 0; i < D::kDims; ++i) {
        const int64_t target = static_cast<int64_t>(random() % (lengths[i] + 6)) - 3;
        by[i] = random() % 3 == 0 ? 0 : target - c[i];
        c[i] += by[i];
      }
      std::apply([&](auto... s) { moving.move(s...); }, by);
      const Coordinate<D> fresh = at(d, c);
      ASSERT_EQ(moving.offset(), fresh.offset()) << "to " << text(c) << " by " << text(by);
      ASSERT_EQ(moving.is_valid(), fresh.is_valid()) << "to " << text(c) << " by " << text(by);
    }
  }
}

template <typename D, int Dim>
void check_vector(const D& d, const Definition<D>& definition) {
  for (const int limit : {1, 3, 8, 64}) {
    const int width = vector_length<Dim>(d, limit), known = known_vector_length<Dim, D>(limit);
    ASSERT_LE(width, limit);
    ASSERT_LE(known, width) << "dimension " << Dim;
    ASSERT_TRUE(is_vector(d, definition, Dim, width)) << "dimension " << Dim << ", width " << width;
  }
}

// All laws. The definition sees only indices within the lengths.
template <typename D>
void check_laws(const D& d, const std::type_identity_t<Definition<D>>& definition, std::mt19937& random) {
  ASSERT_TRUE(d.consistent());
  check_offsets(d, definition);
  if (::testing::Test::HasFatalFailure()) return;
  for (const int64_t n : lengths_of(d)) {
    if (n == 0) return;
  }
  check_moves(d, random);
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (check_vector<D, I>(d, definition), ...);
  }
  (std::make_integer_sequence<int, D::kDims>{});
}

inline int pick(std::mt19937& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1));
}

// Distinct values, so that a wrong address shows.
inline std::vector<float> numbered(int64_t count) {
  std::vector<float> v(count);
  for (int64_t i = 0; i < count; ++i) v[i] = static_cast<float>(i + 1);
  return v;
}

}  // namespace heddle::tile::testing
