// Operators on tiles of a block, on the emulator: one unit has all cases of a test, each a kernel of one block.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <regex>

#include "../emulator/fixture.h"

namespace heddle::testing_cuda {
namespace {

// Layouts of 30 x 44: shapes that no digits fit, several threads with one element, several digits along a dimension.
constexpr const char* kHead = R"(
#include "tile/block/block.h"
namespace tile = heddle::tile;
namespace block = tile::block;
using tile::dims;
using block::reg;
using block::lane;
using block::warp;
using block::Place;
using Shape = dims<30, 44>;
using L0 = block::Layout<Shape, reg<4, 1, 1>, lane<4, 1, 4>, lane<8, 0, 1>, warp<4, 0, 8>, reg<3, 1, 16>>;
using L1 = block::Layout<Shape, reg<2, 0, 1>, lane<16, 0, 2>, lane<2>, warp<2, 1, 1>, warp<2, 1, 2>, reg<11, 1, 4>>;
using L2 = block::mma_layout_t<30, 44, 2, 2>;
using L3 = block::Layout<Shape, lane<32, 1, 1>, reg<2, 1, 32>, warp<4>, reg<30, 0, 1>>;

template <typename L>
__device__ auto at(float* p) {
  return block::from_place<L>([=](const Place& q) { return p + q.at[0] * L::size(1) + q.at[1]; });
}
template <typename L>
__device__ auto read(const float* p) {
  return block::load<L>(block::window<3u>(p, {L::size(0), L::size(1)}, {L::size(1), 1}, {0, 0}), 0.f);
}
template <typename T, typename L>
__device__ void write(float* p, const block::Tile<T, L>& x) {
  const auto f = block::map([](T e) { return block::cast<float>(e); }, x);
  if constexpr (L::kRank == 1) {
    block::store(block::from_place<L>([=](const Place& q) { return p + q.at[0]; }), f);
  } else {
    block::store(at<L>(p), f);
  }
}
constexpr block::scratch<> kShared{};
// Products of 30 x 44 and 44 x 30, the second the transpose of the first.
using S = block::mma_layout<30, 30, 2, 2>;
using Plain = block::by_plain<30, 30>;
using P = block::Layout<dims<30, 30>, reg<2, 1, 1>, lane<16, 1, 2>, lane<2, 0, 1>, warp<4, 0, 2>, reg<4, 0, 8>>;
)";

// Of layout L@; CASE(name) is the head of a kernel of x, 30 x 44 numbers, that writes y.
constexpr const char* kLayoutCases = R"(
CASE(copy@) { block::store(at<L@>(y), block::load(at<L@>(x))); }
CASE(window@) {
  const auto w = block::window<3u>(x, {30, 44}, {44, 1}, {-3, 5});
  const auto v = block::load<L@>(w, 7.f);
  block::store(block::window<3u>(y, {30, 44}, {44, 1}, {0, 0}), v);
}
CASE(rows@) { write(y, block::reduce<1>(kShared, block::sum_of{}, read<L@>(x))); }
CASE(columns@) { write(y, block::reduce<0>(kShared, block::max_of{}, read<L@>(x))); }
CASE(all@) {
  const float s = block::reduce<0>(kShared, block::sum_of{}, block::reduce<1>(kShared, block::sum_of{}, read<L@>(x)));
  y[threadIdx.x] = s;
}
CASE(argmax@) {
  const auto index = block::from_place<L@>([](const Place& q) { return q.at[1]; });
  const auto best = block::reduce<1>(
      kShared, [](auto a, auto b) {
        const bool other = get<0>(b) > get<0>(a) || (get<0>(b) == get<0>(a) && get<1>(b) < get<1>(a));
        return other ? b : a;
      }, read<L@>(x), index);
  write(y, block::entry<1>(best));
}
CASE(scan@) { write(y, block::scan<1>(kShared, block::sum_of{}, read<L@>(x))); }
CASE(back@) { write(y, block::scan<0, true>(kShared, block::sum_of{}, read<L@>(x))); }
CASE(affine@) {
  const auto v = read<L@>(x);
  const auto half = block::map([](float e) { return 0.5f + 0.f * e; }, v);
  const auto all = block::scan<1>(kShared, [](auto a, auto b) {
    return tile::make_tuple(get<0>(a) * get<0>(b), get<1>(a) * get<0>(b) + get<1>(b));
  }, half, v);
  write(y, block::entry<1>(all));
}
CASE(convert@) {
  const auto a = block::convert<L1>(kShared, read<L@>(x));
  const auto b = block::convert<L2>(kShared, a);
  const auto c = block::convert<L3>(kShared, b);
  const auto d = block::convert<L0>(kShared, c);
  write(y, block::convert<L@>(kShared, d));
}
CASE(narrow@) {
  const auto h = block::map([](float e) { return block::cast<tile::half>(e); }, read<L@>(x));
  const auto b = block::map([](float e) { return e > 0.f; }, read<L@>(x));
  const auto to = block::convert<L3>(kShared, h);
  const auto flag = block::convert<L3>(kShared, b);
  write(y, block::map([](tile::half e, bool f) { return f ? block::widen(e) : -1.f; }, to, flag));
}
CASE(center@) {
  const auto v = read<L@>(x);
  const auto m = block::broadcast<L@, 1>(block::expand<1>(block::reduce<1>(kShared, block::max_of{}, v)));
  write(y, block::map([](float a, float b) { return a - b; }, v, m));
}
CASE(turn@) {
  const auto t = block::permute<1, 0>(read<L@>(x));
  write(y, block::reshape<L@>(kShared, t));
}
CASE(joined@) {
  const auto v = read<L@>(x);
  const auto both = block::join(v, block::map([](float e) { return 2.f * e; }, v));
  write(y, block::map([](float a, float b) { return b - 3.f * a; }, block::half_of<L@, 0>(both), block::half_of<L@, 1>(both)));
}
)";

constexpr const char* kSharedCases = R"(
CASE(flip@) { write(y, block::flip<1>(kShared, read<L@>(x))); }
CASE(gather@) {
  const auto index = block::from_place<L@>([](const Place& q) { return (q.at[1] * 7 + q.at[0]) % 44; });
  write(y, block::gather<1>(kShared, read<L@>(x), index));
}
CASE(extract@) {
  write(y, block::extract<block::Layout<dims<30, 11>, lane<8, 1, 1>, lane<4, 0, 1>, reg<2, 1, 8>, warp<4, 0, 4>, reg<2, 0, 16>>, 1>(kShared, read<L@>(x), 9));
}
CASE(cat@) {
  write(y, block::cat<block::Layout<dims<60, 44>, lane<32, 1, 1>, reg<2, 1, 32>, warp<4, 0, 1>, reg<15, 0, 4>>>(kShared, read<L@>(x), read<L1>(x)));
}
CASE(sort@) { write(y, block::sort<1>(kShared, read<L@>(x))); }
CASE(unsort@) { write(y, block::sort<0, true>(kShared, read<L@>(x))); }
CASE(count@) {
  const auto bin = block::map([](float e) { return int(e * 4.f + 8.f); }, read<L@>(x));
  using Bins = block::Layout<dims<11>, lane<32, 0, 1>, warp<4>>;
  write(y, block::histogram<Bins>(kShared, bin, block::map([](float e) { return e > -1.f; }, read<L@>(x))));
}
CASE(atomic@) {
  const auto v = read<L@>(x);
  const auto p = block::from_place<L@>([=](const Place& q) { return y + q.at[1]; });
  block::atomic<block::atomic_add, block::Order::kRelaxed, block::Scope::kDevice>(kShared, p, v, true);
  const auto old = block::atomic<block::atomic_max, block::Order::kAcquireRelease, block::Scope::kDevice>(
      kShared, block::map([](float* q) { return q + 64; }, p), v, block::map([](float e) { return e > 0.f; }, v));
  const float n = block::atomic<block::atomic_add, block::Order::kAcquireRelease, block::Scope::kBlock>(kShared, y + 120, 2.f, true);
  const float m = block::atomic<block::atomic_add, block::Order::kAcquireRelease, block::Scope::kBlock>(kShared, y + 120, 2.f, true);
  y[128 + threadIdx.x] = n * 10.f + m + 0.f * old.v[0];
}
)";

// name, what multiplies, element, type of sums, sums, their layout, layouts of the operands before one is turned.
constexpr const char* kProducts[][8] = {
    {"dot_f16", "by_f16", "tile::half", "float", "S", "S::type", "L0", "L0"},
    {"dot_f16_turned", "by_f16", "tile::half", "float", "S", "S::type", "L1", "L1"},
    {"dot_f16_f16", "by_f16", "tile::half", "float", "S", "S::type", "L2", "L3"},
    {"dot_bf16", "by_bf16", "tile::bfloat", "float", "S", "S::type", "L3", "L2"},
    {"dot_tf32", "by_tf32", "float", "float", "S", "S::type", "L0", "L1"},
    {"dot_tf32x3", "by_tf32x3", "float", "float", "S", "S::type", "L1", "L0"},
    {"dot_i8", "by_int8<int8_t>", "int8_t", "int32_t", "S", "S::type", "L0", "L3"},
    {"dot_f8", "by_f16", "tile::f8e4m3", "float", "S", "S::type", "L0", "L0"},
    {"dot_f32", "by_thread<float>", "float", "float", "Plain", "P", "L0", "L1"},
    {"dot_f64", "by_thread<double>", "double", "double", "Plain", "P", "L1", "L0"},
    {"dot_f16_sums", "by_f16", "tile::half", "tile::half", "S", "S::type", "L0", "L0"},
};

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string of_every_layout(const char* cases) {
  std::string all;
  for (const char* number : {"0", "1", "2"}) all += replaced(cases, "@", number);
  return all;
}

std::string products() {
  std::string cases;
  for (const auto& [name, by, element, sum, sums, layout, a, b] : kProducts) {
    cases += fmt::format(R"(CASE({}) {{
  const auto a = block::map([](float e) {{ return block::cast<{}>(e); }}, read<{}>(x));
  const auto b = block::permute<1, 0>(block::map([](float e) {{ return block::cast<{}>(e); }}, read<{}>(x)));
  write(y, block::dot<block::{}, {}>(kShared, a, b, block::fill<{}>(block::cast<{}>(1.f))));
}}
)",
                         name, element, a, element, b, by, sums, layout, sum);
  }
  return cases;
}

constexpr int kM = 30, kN = 44;
using BlockMatrix = std::vector<double>;
double at(const BlockMatrix& x, int i, int j) {
  return x[static_cast<size_t>(i * kN + j)];
}
using Expected = std::function<double(const BlockMatrix& x, int at)>;

class Block : public emulator::EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    std::mt19937 random(7);
    x.resize(kM * kN);
    for (double& e : x) e = static_cast<double>(static_cast<int>(random() % 65) - 32) / 16;
  }
  void compile(const std::string& cases) {
    const std::string head = R"(extern "C" __global__ void __launch_bounds__(128) $1(float* y, float* x))";
    const std::string unit = kHead + std::regex_replace(cases, std::regex(R"(CASE\((\w+)\))"), head);
    const auto machine_code = jit::compile_cubin(unit, context->device().target.architecture(), false).bytes;
    module = std::make_unique<runtime::CudaModule>(*context, machine_code);
  }
  // `count` results of the kernel, which nothing else is written beside.
  void check(const std::string& kernel, int count, const Expected& expected, double bound = 1e-6) {
    constexpr size_t kMost = 60 * 44 + 64;
    std::vector<float> in(x.begin(), x.end()), poison(kMost, -77.f);
    auto from = buffer(in.size() * 4), to = buffer(kMost * 4);
    from.write(in.data(), in.size() * 4);
    to.write(poison.data(), kMost * 4);
    launch(kernel.c_str(), 1, 128, 96 << 10, to.address(), from.address());
    const auto got = read<float>(to);
    int wrong = 0;
    for (int i = 0; i < static_cast<int>(kMost) && wrong < 3; ++i) {
      const double want = i < count ? expected(x, i) : -77.0;
      if (std::abs(got[static_cast<size_t>(i)] - want) <= bound * std::max(1.0, std::abs(want))) continue;
      ++wrong;
      ADD_FAILURE() << kernel << ": element " << i << " is " << got[static_cast<size_t>(i)] << ", not " << want;
    }
  }
  BlockMatrix x;
};

double row_sum(const BlockMatrix& x, int i) {
  double sum = 0;
  for (int j = 0; j < kN; ++j) sum += at(x, i, j);
  return sum;
}
double row_max(const BlockMatrix& x, int i) {
  return *std::max_element(x.begin() + i * kN, x.begin() + (i + 1) * kN);
}

TEST_F(Block, EveryLayout) {
  compile(of_every_layout(kLayoutCases));
  for (int n = 0; n < 3; ++n) {
    const auto name = [&](const char* kernel) { return kernel + std::to_string(n); };
    const auto same = [](const BlockMatrix& m, int k) { return m[static_cast<size_t>(k)]; };
    check(name("copy"), kM * kN, same);
    check(name("convert"), kM * kN, same);
    check(name("narrow"), kM * kN, [](const BlockMatrix& m, int k) { return m[k] > 0 ? m[k] : -1; });
    check(name("window"), kM * kN, [](const BlockMatrix& m, int k) {
      const int i = k / kN - 3, j = k % kN + 5;
      return i < 0 || j >= kN ? 7 : at(m, i, j);
    });
    check(name("rows"), kM, row_sum);
    check(name("all"), 128, [](const BlockMatrix& m, int) {
      double sum = 0;
      for (const double e : m) sum += e;
      return sum;
    });
    check(name("columns"), kN, [](const BlockMatrix& m, int j) {
      double best = at(m, 0, j);
      for (int i = 1; i < kM; ++i) best = std::max(best, at(m, i, j));
      return best;
    });
    check(name("argmax"), kM, [](const BlockMatrix& m, int i) {
      return static_cast<double>(std::max_element(m.begin() + i * kN, m.begin() + (i + 1) * kN) - m.begin() - i * kN);
    });
    check(name("scan"), kM * kN, [](const BlockMatrix& m, int k) {
      double sum = 0;
      for (int j = 0; j <= k % kN; ++j) sum += at(m, k / kN, j);
      return sum;
    });
    check(name("back"), kM * kN, [](const BlockMatrix& m, int k) {
      double sum = 0;
      for (int i = k / kN; i < kM; ++i) sum += at(m, i, k % kN);
      return sum;
    });
    check(name("affine"), kM * kN, [](const BlockMatrix& m, int k) {
      double sum = 0;
      for (int j = 0; j <= k % kN; ++j) sum = 0.5 * sum + at(m, k / kN, j);
      return sum;
    });
    check(name("center"), kM * kN, [](const BlockMatrix& m, int k) { return m[k] - row_max(m, k / kN); });
    check(name("turn"), kM * kN, [](const BlockMatrix& m, int k) { return at(m, k % kM, k / kM); });
    check(name("joined"), kM * kN, [](const BlockMatrix& m, int k) { return -m[k]; });
  }
}

TEST_F(Block, ThroughSharedMemory) {
  compile(of_every_layout(kSharedCases));
  for (int n = 0; n < 3; ++n) {
    const auto name = [&](const char* kernel) { return kernel + std::to_string(n); };
    check(name("flip"), kM * kN, [](const BlockMatrix& m, int k) { return at(m, k / kN, kN - 1 - k % kN); });
    check(name("gather"), kM * kN,
          [](const BlockMatrix& m, int k) { return at(m, k / kN, (k % kN * 7 + k / kN) % kN); });
    check(name("extract"), kM * 11, [](const BlockMatrix& m, int k) { return at(m, k / 11, k % 11 + 9); });
    check(name("cat"), 2 * kM * kN, [](const BlockMatrix& m, int k) { return m[k % (kM * kN)]; });
    check(name("sort"), kM * kN, [](const BlockMatrix& m, int k) {
      BlockMatrix row(m.begin() + k / kN * kN, m.begin() + (k / kN + 1) * kN);
      std::sort(row.begin(), row.end());
      return row[k % kN];
    });
    check(name("unsort"), kM * kN, [](const BlockMatrix& m, int k) {
      BlockMatrix column;
      for (int i = 0; i < kM; ++i) column.push_back(-at(m, i, k % kN));
      std::sort(column.begin(), column.end());
      return -column[k / kN];
    });
    check(name("count"), 11, [](const BlockMatrix& m, int bin) {
      return static_cast<double>(
          std::count_if(m.begin(), m.end(), [&](double e) { return e > -1 && static_cast<int>(e * 4 + 8) == bin; }));
    });
    check(name("atomic"), 256, [](const BlockMatrix& m, int k) {
      if (k >= 128) return -77 * 10.0 - 75;
      if (k == 120) return -73.0;
      const int j = k % 64;
      if (j >= kN) return -77.0;
      double sum = -77, best = -77;
      for (int i = 0; i < kM; ++i) {
        sum += at(m, i, j);
        if (at(m, i, j) > 0) best = std::max(best, at(m, i, j));
      }
      return k < 64 ? sum : best;
    });
  }
}

TEST_F(Block, Products) {
  compile(products());
  const auto product = [](const BlockMatrix& m, int k) {
    double sum = 1;
    for (int j = 0; j < kN; ++j) sum += at(m, k / kM, j) * at(m, k % kM, j);
    return sum;
  };
  for (const char* kernel :
       {"dot_f16", "dot_f16_turned", "dot_f16_f16", "dot_bf16", "dot_tf32", "dot_tf32x3", "dot_f32", "dot_f64"}) {
    check(kernel, kM * kM, product);
  }
  check("dot_f16_sums", kM * kM, product, 1e-3);
  check("dot_f8", kM * kM, [](const BlockMatrix& m, int k) {
    // Four bits of mantissa, ties to even.
    const auto f8 = [](double e) {
      if (e == 0) return e;
      const double unit = std::exp2(std::floor(std::log2(std::abs(e))) - 3);
      return std::nearbyint(e / unit) * unit;
    };
    double sum = 1;
    for (int j = 0; j < kN; ++j) sum += f8(at(m, k / kM, j)) * f8(at(m, k % kM, j));
    return sum;
  });
  check("dot_i8", kM * kM, [](const BlockMatrix& m, int k) {
    double sum = 1;
    for (int j = 0; j < kN; ++j) sum += std::trunc(at(m, k / kM, j)) * std::trunc(at(m, k % kM, j));
    return sum;
  });
}

}  // namespace
}  // namespace heddle::testing_cuda
