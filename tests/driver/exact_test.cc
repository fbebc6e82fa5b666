// What models compute exactly, or as exactly as a pairwise sum.
#include <cmath>
#include <functional>
#include <random>

#include "constant_values.h"

namespace heddle {
namespace {

// A model each of whose results is a sum of products of two inputs, or of elements of one.
struct Sums {
  std::string text;
  std::vector<Shape> shapes;  // of the inputs
  int64_t terms;
  std::function<std::array<int64_t, 2>(int64_t result, int64_t term)> at = {};  // in each input
  bool narrow = false;                                                          // values that f16 has, too
};

Tensor draw(const Shape& shape, bool narrow, std::mt19937& random) {
  constexpr int kDigits = 11;  // of f16
  Tensor t(DType::kF32, shape);
  std::normal_distribution<float> normal;
  for (float& x : t.mutable_values<float>()) {
    x = normal(random);
    if (!narrow) continue;
    int exponent = 0;
    const float fraction = std::frexp(x, &exponent);
    x = std::ldexp(std::round(std::ldexp(fraction, kDigits)), std::max(exponent, -8) - kDigits);
  }
  return t;
}

float pairwise(std::vector<float> terms) {
  for (size_t count = terms.size(); count > 1; count = (count + 1) / 2) {
    for (size_t i = 0; i < count / 2; ++i) terms[i] = terms[2 * i] + terms[2 * i + 1];
    if (count % 2 == 1) terms[count / 2] = terms[count - 1];
  }
  return terms[0];
}

// The root mean square of the errors of a model's sums, in those of pairwise sums of the same terms in f32.
double relative_error(const Sums& sums, int threads) {
  const TempDir folder;
  const std::string path = folder.path() + "/m.hir";
  write_file(path, sums.text);
  CompileOptions options;
  options.threads = threads;
  const Model model = Model::load(path, options);
  std::mt19937 random(11);
  std::map<std::string, Tensor> inputs;
  for (size_t i = 0; i < sums.shapes.size(); ++i) {
    inputs.emplace(fmt::format("x{}", i), draw(sums.shapes[i], sums.narrow, random));
  }
  const Tensor y = model.run(inputs)[0];
  const auto value = [&](size_t input, int64_t at) {
    return input < inputs.size() ? inputs.at(fmt::format("x{}", input)).values<float>()[static_cast<size_t>(at)] : 1;
  };
  double ours = 0, theirs = 0;
  std::vector<float> terms(static_cast<size_t>(sums.terms));
  for (int64_t result = 0; result < y.size(); ++result) {
    double exact = 0;
    for (int64_t t = 0; t < sums.terms; ++t) {
      const auto [a, b] = sums.at(result, t);
      exact += static_cast<double>(value(0, a)) * value(1, b);
      terms[static_cast<size_t>(t)] = value(0, a) * value(1, b);
    }
    ours += std::pow(y.values<float>()[static_cast<size_t>(result)] - exact, 2);
    theirs += std::pow(pairwise(terms) - exact, 2);
  }
  return std::sqrt(ours / theirs);
}

constexpr double kMostOfPairwise = 4;  // one chain of additions, or one for each lane, is 10 to 50 times as far off
constexpr int64_t kTerms = 60007;

// [m, k] x [k, n], each as it is or transposed; `type`: to which the inputs are rounded.
Sums product(int64_t m, int64_t n, bool ta, bool tb, const std::string& type = "f32") {
  constexpr int64_t k = kTerms;
  Sums s;
  s.shapes = {ta ? Shape{k, m} : Shape{m, k}, tb ? Shape{n, k} : Shape{k, n}};
  s.text = fmt::format(R"(graph(%x0: f32[{}], %x1: f32[{}]) {{
    %a = cast(%x0) {{to = {}}}
    %b = cast(%x1) {{to = {}}}
    %y = dot(%a, %b) {{lhs_batch = [], rhs_batch = [], lhs_contract = [{}], rhs_contract = [{}], out = f32}}
    return "y" = %y
  }})",
                       fmt::join(s.shapes[0], ","), fmt::join(s.shapes[1], ","), type, type, ta ? 0 : 1, tb ? 1 : 0);
  s.terms = k;
  s.at = [=](int64_t result, int64_t t) {
    const int64_t i = result / n, j = result % n;
    return std::array{ta ? t * m + i : i * k + t, tb ? j * k + t : t * n + j};
  };
  s.narrow = type != "f32";
  return s;
}

Sums reduction(const Shape& shape, int64_t dim) {
  Sums s;
  s.shapes = {shape};
  s.text = fmt::format(R"(graph(%x0: f32[{}]) {{
    %y = reduce(%x0) {{kind = "sum", dims = [{}]}}
    return "y" = %y
  }})",
                       fmt::join(shape, ","), dim);
  s.terms = shape[static_cast<size_t>(dim)];
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(dim) + 1; d < shape.size(); ++d) inner *= shape[d];
  s.at = [inner, terms = s.terms](int64_t result, int64_t t) {
    return std::array{(result / inner * terms + t) * inner + result % inner, int64_t{0}};
  };
  return s;
}

TEST(ExactSums, ProductsOfFewRowsAndColumns) {
  for (const bool ta : {false, true}) {
    EXPECT_LT(relative_error(product(5, 9, ta, true), ta ? 1 : 2), kMostOfPairwise) << ta;
    EXPECT_LT(relative_error(product(5, 9, ta, false), ta ? 2 : 1), kMostOfPairwise) << ta;
  }
}

TEST(ExactSums, ProductsWithAVector) {
  EXPECT_LT(relative_error(product(40, 1, false, false), 1), kMostOfPairwise);
  EXPECT_LT(relative_error(product(1, 40, false, false), 2), kMostOfPairwise);
}

TEST(ExactSums, ProductsOfSixteenBits) {
  EXPECT_LT(relative_error(product(5, 9, false, false, "f16"), 1), kMostOfPairwise);
  EXPECT_LT(relative_error(product(40, 1, false, true, "f16"), 2), kMostOfPairwise);
}

TEST(ExactSums, Rows) {
  EXPECT_LT(relative_error(reduction({40, kTerms}, 1), 1), kMostOfPairwise);
}

TEST(ExactSums, ColumnsOfAnyWidth) {
  EXPECT_LT(relative_error(reduction({kTerms, 39}, 0), 1), kMostOfPairwise);
  EXPECT_LT(relative_error(reduction({7, kTerms, 5}, 1), 2), kMostOfPairwise);
}

TEST(ExactSums, Convolutions) {
  constexpr int64_t kSide = 50, kChannels = 24, kFilters = 9, kOut = 2, kImage = kSide + kOut - 1;
  Sums s;
  s.shapes = {{1, kChannels, kImage, kImage}, {kFilters, kChannels, kSide, kSide}};
  s.text = fmt::format(R"(graph(%x0: f32[{}], %x1: f32[{}]) {{
    %y = conv(%x0, %x1) {{strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"}}
    return "y" = %y
  }})",
                       fmt::join(s.shapes[0], ","), fmt::join(s.shapes[1], ","));
  s.terms = kChannels * kSide * kSide;
  s.at = [](int64_t result, int64_t t) {
    const int64_t o = result / (kOut * kOut), y = result / kOut % kOut, x = result % kOut;
    const int64_t row = y + t / kSide % kSide, column = x + t % kSide;
    return std::array{(t / (kSide * kSide) * kImage + row) * kImage + column, o * kChannels * kSide * kSide + t};
  };
  EXPECT_LT(relative_error(s, 2), kMostOfPairwise);
}

TEST(Exact, NormalisationsOfEqualValuesAreZero) {
  for (const int threads : {1, 2}) {
    CompileOptions options;
    options.threads = threads;
    test::expect_equal_values_vanish({{{4, 768}, {1}},
                                      {{4, 1000}, {1}},
                                      {{3, 4099}, {1}},
                                      {{1000, 12}, {0}},
                                      {{2, 300, 5}, {1}},
                                      {{3, 7, 130}, {0, 2}},
                                      {{4, 1000}, {1}, "f16"},
                                      {{4, 1000}, {1}, "bf16"}},
                                     options);
  }
}

}  // namespace
}  // namespace heddle
