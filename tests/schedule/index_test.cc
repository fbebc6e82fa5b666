#include "schedule/expr/index.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace heddle::schedule {
namespace {

// The value of an index for given values of the variables.
int64_t evaluate(const IndexPool& pool, const Index& index, const std::vector<int64_t>& vars) {
  int64_t sum = index.constant;
  for (const auto& [id, c] : index.terms) {
    const Atom& atom = pool.atom(id);
    const auto floor_div = [](int64_t a, int64_t b) { return a / b - (a % b < 0); };
    int64_t v = 0;
    if (atom.kind != Atom::Kind::kVar && atom.kind != Atom::Kind::kDynamic) v = evaluate(pool, atom.arg, vars);
    switch (atom.kind) {
      case Atom::Kind::kVar:
        v = vars[atom.id];
        break;
      case Atom::Kind::kDiv:
        v = floor_div(v, atom.a);
        break;
      case Atom::Kind::kMod:
        v -= atom.a * floor_div(v, atom.a);
        break;
      case Atom::Kind::kClamp:
        v = std::min(std::max(v, atom.a), atom.b);
        break;
      case Atom::Kind::kReflect: {
        const int64_t period = 2 * atom.a - 2;
        v -= period * floor_div(v, period);
        v = v < atom.a ? v : period - v;
        break;
      }
      case Atom::Kind::kDynamic:
        break;
    }
    EXPECT_GE(v, atom.range.lo);
    EXPECT_LE(v, atom.range.hi);
    sum += c * v;
  }
  return sum;
}

TEST(Index, QuotientsAndRemaindersOfKnownRangesVanish) {
  IndexPool pool;
  const Index a = pool.var(pool.new_var(10)), b = pool.var(pool.new_var(768));
  const Index flat = pool.add(pool.scale(a, 768), b);
  EXPECT_EQ(pool.div(flat, 768), a);
  EXPECT_EQ(pool.mod(flat, 768), b);
  EXPECT_EQ(pool.div(pool.div(flat, 64), 12), a);
  EXPECT_EQ(pool.mod(pool.mod(flat, 7680), 768), b);
  EXPECT_EQ(pool.clamp(b, 0, 767), b);
  EXPECT_EQ(pool.reflect(pool.offset(b, -767), 768), pool.offset(pool.scale(b, -1), 767));
}

TEST(Index, RowsOfAMatrixStayRowsWhereItIsReshaped) {
  IndexPool pool;
  const Index row = pool.var(pool.new_var(4096)), column = pool.var(pool.new_var(768));
  const Index flat = pool.add(pool.scale(row, 768), column);
  EXPECT_EQ(pool.div(flat, 128 * 768), pool.div(row, 128));
  EXPECT_EQ(pool.mod(flat, 128 * 768), pool.add(pool.scale(pool.mod(row, 128), 768), column));
  const Shape split = {32, 128, 768}, heads = {32, 128, 12, 64};
  const std::vector<Index> at = {pool.div(row, 128), pool.mod(row, 128), column};
  EXPECT_EQ(pool.linear(pool.delinear(pool.linear(at, split), heads), heads), flat);
}

TEST(Index, ReshapeChainsCollapse) {
  IndexPool pool;
  const Index flat = pool.var(pool.new_var(2 * 3 * 4 * 5));
  const Shape shapes[] = {{2, 3, 4, 5}, {6, 20}, {24, 5}, {120}, {2, 60}, {5, 4, 3, 2}};
  for (const Shape& first : shapes) {
    for (const Shape& second : shapes) {
      const Index through = pool.linear(pool.delinear(flat, first), first);
      EXPECT_EQ(pool.linear(pool.delinear(through, second), second), flat)
          << heddle::to_string(first) << " " << heddle::to_string(second);
    }
  }
}

TEST(Index, PiecesOfALoopDecideMore) {
  IndexPool pool;
  const VarId v = pool.new_var(100);
  EXPECT_EQ(pool.div(pool.var(v, {32, 63}), 32), IndexPool::constant(1));
  EXPECT_EQ(pool.mod(pool.var(v, {32, 63}), 32), pool.offset(pool.var(v, {32, 63}), -32));
  EXPECT_EQ(pool.var(v, {7, 7}), IndexPool::constant(7));
}

// Whatever is simplified: the value of the result at every point is that of the plain arithmetic.
TEST(Index, RandomExpressionsKeepTheirValues) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
    IndexPool pool;
    using Plain = std::function<int64_t(const std::vector<int64_t>&)>;
    std::vector<std::pair<Index, Plain>> values;
    std::vector<int64_t> extents;
    for (int i = 0; i < 3; ++i) {
      extents.push_back(pick(1, 12));
      const VarId v = pool.new_var(extents.back());
      values.emplace_back(pool.var(v), [v](const std::vector<int64_t>& at) { return at[v]; });
    }
    for (int i = 0; i < 12; ++i) {
      const auto [x, fx] = values[static_cast<size_t>(pick(0, static_cast<int64_t>(values.size()) - 1))];
      const auto [y, fy] = values[static_cast<size_t>(pick(0, static_cast<int64_t>(values.size()) - 1))];
      const int64_t k = pick(1, 12), c = pick(-5, 12);
      const auto floor_div = [](int64_t a, int64_t b) { return a / b - (a % b < 0); };
      switch (pick(0, 5)) {
        case 0:
          values.emplace_back(pool.add(x, y), [fx = fx, fy = fy](const auto& at) { return fx(at) + fy(at); });
          break;
        case 1:
          values.emplace_back(pool.scale(x, c), [fx = fx, c](const auto& at) { return c * fx(at); });
          break;
        case 2:
          values.emplace_back(pool.offset(x, c), [fx = fx, c](const auto& at) { return fx(at) + c; });
          break;
        case 3:
          values.emplace_back(pool.div(x, k), [=, fx = fx](const auto& at) { return floor_div(fx(at), k); });
          break;
        case 4:
          values.emplace_back(pool.mod(x, k),
                              [=, fx = fx](const auto& at) { return fx(at) - k * floor_div(fx(at), k); });
          break;
        default:
          values.emplace_back(pool.clamp(x, -2, k),
                              [=, fx = fx](const auto& at) { return std::min(std::max<int64_t>(fx(at), -2), k); });
      }
    }
    std::vector<int64_t> at(3);
    for (at[0] = 0; at[0] < extents[0]; ++at[0]) {
      for (at[1] = 0; at[1] < extents[1]; ++at[1]) {
        for (at[2] = 0; at[2] < extents[2]; ++at[2]) {
          for (const auto& [index, plain] : values) {
            ASSERT_EQ(evaluate(pool, index, at), plain(at)) << "seed " << seed;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace heddle::schedule
