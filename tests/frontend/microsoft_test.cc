// Operators of ONNX Runtime against the standard's, or against numbers worked out by hand.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "heddle/error.h"
#include "ir/reference/scalar.h"
#include "microsoft_testing.h"

namespace heddle::onnx {
namespace {

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

constexpr int64_t kHeads = 2;
const Attributes kStandardHeads = {{"q_num_heads", kHeads}, {"kv_num_heads", kHeads}};

// What Attention makes of x [2, 3, 4] with projections to 8 wide queries, keys and values.
struct Projected {
  Tensor x = random({2, 3, 4}), w = random({4, 24}), bias = random({24});
  std::vector<NodeSpec> nodes = {
      {"MatMul", {"x", "w"}, {"m"}},
      {"Add", {"m", "bias"}, {"p"}},
      {"Split", {"p"}, {"q", "k", "v"}, {{"axis", int64_t{2}}, {"num_outputs", int64_t{3}}}}};

  Arrays standard(std::vector<std::string> more, Tensors inputs, Attributes attributes = {},
                  std::vector<std::string> results = {"y"}) const {
    std::vector<NodeSpec> all = nodes;
    std::vector<std::string> names = {"q", "k", "v"};
    names.insert(names.end(), more.begin(), more.end());
    attributes.insert(kStandardHeads.begin(), kStandardHeads.end());
    all.push_back({"Attention", names, results, attributes});
    inputs["x"] = x;
    return run(all, inputs, results, {{"w", w}, {"bias", bias}});
  }
  Arrays fused(std::vector<std::string> more, Tensors inputs, Attributes attributes = {},
               std::vector<std::string> results = {"y"}) const {
    std::vector<std::string> names = {"x", "w", "bias"};
    names.insert(names.end(), more.begin(), more.end());
    attributes["num_heads"] = kHeads;
    inputs["x"] = x;
    return run({microsoft("Attention", names, results, attributes)}, inputs, results, {{"w", w}, {"bias", bias}});
  }
};

TEST(MicrosoftAttention, IsAProjectionAndTheStandardsAttention) {
  const Projected p;
  expect_near(p.fused({}, {}).at("y"), p.standard({}, {}).at("y"));
  expect_near(p.fused({}, {}, {{"unidirectional", int64_t{1}}}).at("y"),
              p.standard({}, {}, {{"is_causal", int64_t{1}}}).at("y"));
  expect_near(p.fused({}, {}, {{"scale", 0.3f}}).at("y"), p.standard({}, {}, {{"scale", 0.3f}}).at("y"));
}

TEST(MicrosoftAttention, MasksOfAllFormsHideTheSameKeys) {
  const Projected p;
  const Tensor seen = Tensor::of<uint8_t>(DType::kBool, {2, 1, 1, 3}, {1, 1, 0, 1, 1, 1});
  const ir::Array expected = p.standard({"seen"}, {{"seen", seen}}).at("y");
  for (const Tensor& mask : {ints({2}, {2, 3}), ints({4}, {2, 3, 0, 0}), ints({2, 3}, {1, 1, 0, 1, 1, 1}),
                             ints({2, 3, 3}, {1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1})}) {
    SCOPED_TRACE(to_string(mask.shape()));
    expect_near(p.fused({"mask"}, {{"mask", mask}}).at("y"), expected);
  }
  // A row of which nothing may be seen is what it would be without the mask.
  expect_near(p.fused({"mask"}, {{"mask", ints({2, 3}, {0, 0, 0, 0, 0, 0})}}).at("y"), p.fused({}, {}).at("y"));
  EXPECT_THAT(error_of([&] {
                p.fused({"mask"}, {{"mask", ints({5}, {1, 1, 1, 1, 1})}});
              }),
              ::testing::HasSubstr("a mask of shape [5] for 2 sequences of 3 queries and 3 keys"));
}

TEST(MicrosoftAttention, KeepsKeysAndValuesOfThePastInOneTensor) {
  const Projected p;
  const Tensor past = random({2, 2, kHeads, 5, 4});
  const auto half = [&](size_t i) {
    const auto from = past.values<float>().begin() + static_cast<int64_t>(i) * 80;
    return floats({2, kHeads, 5, 4}, std::vector<float>(from, from + 80));
  };
  const Arrays fused = p.fused({"", "past"}, {{"past", past}}, {{"unidirectional", int64_t{1}}}, {"y", "present"});
  const Arrays standard =
      p.standard({"", "pk", "pv"}, {{"pk", half(0)}, {"pv", half(1)}}, {{"is_causal", int64_t{1}}}, {"y", "k2", "v2"});
  expect_near(fused.at("y"), standard.at("y"));
  std::vector<double> both = standard.at("k2").f();
  both.insert(both.end(), standard.at("v2").f().begin(), standard.at("v2").f().end());
  EXPECT_EQ(fused.at("present").shape, (Shape{2, 2, kHeads, 8, 4}));
  EXPECT_EQ(fused.at("present").f(), both);
}

TEST(MicrosoftAttention, OfQuantisedNumbersIsThatOfTheNumbersBehindThem) {
  const Tensors inputs = {{"x", bytes({1, 2, 2}, {130, 120, 128, 140})}};
  const Tensors weights = {{"w", chars({2, 6}, {1, -2, 3, 4, 5, -6, 7, 8, -9, 10, 11, 12})},
                           {"b", random({6})},
                           {"xs", floats({}, {0.1f})},
                           {"ws", floats({6}, {.1f, .2f, .3f, .4f, .5f, .6f})},
                           {"xz", bytes({}, {128})},
                           {"wz", chars({6}, {0, 1, 0, 0, 2, 0})}};
  const Arrays fused =
      run({microsoft("QAttention", {"x", "w", "b", "xs", "ws", "", "xz", "wz"}, {"y"}, {{"num_heads", int64_t{1}}})},
          inputs, {"y"}, weights);
  const Arrays real = run({{"DequantizeLinear", {"x", "xs", "xz"}, {"xr"}},
                           {"DequantizeLinear", {"w", "ws", "wz"}, {"wr"}, {{"axis", int64_t{1}}}},
                           microsoft("Attention", {"xr", "wr", "b"}, {"y"}, {{"num_heads", int64_t{1}}})},
                          inputs, {"y"}, weights);
  expect_near(fused.at("y"), real.at("y"), 1e-5);
}

TEST(MultiHeadAttention, AddsABiasToProjectionsAndTakesPackedOnes) {
  const Tensor q = random({2, 3, 8}), kv = random({2, 5, kHeads, 2, 4}), bias = random({24});
  std::vector<float> k, v;
  for (int64_t row = 0; row < 2 * 5 * kHeads * 2; ++row) {
    const auto from = kv.values<float>().begin() + row * 4;
    (row % 2 == 0 ? k : v).insert((row % 2 == 0 ? k : v).end(), from, from + 4);
  }
  const Tensors apart = {{"q", q}, {"k", floats({2, 5, 8}, k)}, {"v", floats({2, 5, 8}, v)}};
  const Arrays standard = run({{"Add", {"q", "bq"}, {"q2"}},
                               {"Add", {"k", "bk"}, {"k2"}},
                               {"Add", {"v", "bv"}, {"v2"}},
                               {"Attention", {"q2", "k2", "v2"}, {"y"}, kStandardHeads}},
                              apart, {"y"}, {{"bq", third(bias, 0)}, {"bk", third(bias, 1)}, {"bv", third(bias, 2)}});
  const Attributes heads = {{"num_heads", kHeads}};
  expect_near(
      run({microsoft("MultiHeadAttention", {"q", "k", "v", "b"}, {"y"}, heads)}, apart, {"y"}, {{"b", bias}}).at("y"),
      standard.at("y"));
  expect_near(run({microsoft("MultiHeadAttention", {"q", "kv", "", "b"}, {"y"}, heads)}, {{"q", q}, {"kv", kv}}, {"y"},
                  {{"b", bias}})
                  .at("y"),
              standard.at("y"));
}

TEST(MultiHeadAttention, TakesThePastAndAnAddend) {
  const Tensors inputs = {{"q", random({1, 2, 8})},    {"k", random({1, 2, 8})},     {"v", random({1, 2, 8})},
                          {"a", random({1, 1, 2, 5})}, {"pk", random({1, 2, 3, 4})}, {"pv", random({1, 2, 3, 4})}};
  const Arrays fused = run({microsoft("MultiHeadAttention", {"q", "k", "v", "", "", "a", "pk", "pv"}, {"y", "k2", "v2"},
                                      {{"num_heads", kHeads}})},
                           inputs, {"y", "k2", "v2"});
  const Arrays standard = run({{"Attention", {"q", "k", "v", "a", "pk", "pv"}, {"y", "k2", "v2"}, kStandardHeads}},
                              inputs, {"y", "k2", "v2"});
  for (const char* name : {"y", "k2", "v2"}) expect_near(fused.at(name), standard.at(name));
}

TEST(MicrosoftRotary, OnePositionCountsForTheFirstElement) {
  const Tensors tables = {{"cos", random({8, 2})}, {"sin", random({8, 2})}};
  const Tensor x = random({2, 3, 8});
  const auto at = [&](const Tensor& position) {
    return run({microsoft("RotaryEmbedding", {"x", "p", "cos", "sin"}, {"y"})}, {{"x", x}, {"p", position}}, {"y"},
               tables)
        .at("y");
  };
  expect_near(at(longs({1}, {4})), at(longs({2, 3}, {4, 5, 6, 4, 5, 6})));
  Tensors all = tables;
  all["p"] = longs({2, 3}, {4, 5, 6, 4, 5, 6});
  expect_near(at(longs({1}, {4})), run({{"RotaryEmbedding", {"x", "cos", "sin", "p"}, {"y"}, {{"num_heads", kHeads}}}},
                                       {{"x", x}}, {"y"}, all)
                                       .at("y"));
}

TEST(EmbedLayerNormalization, AddsThreeEmbeddingsAndCountsWords) {
  const Tensors tables = {
      {"we", random({5, 4})}, {"pe", random({6, 4})}, {"se", random({2, 4})}, {"g", random({4})}, {"b", random({4})}};
  const Tensors inputs = {{"i", ints({2, 3}, {0, 4, 2, 1, 1, 3})},
                          {"t", ints({2, 3}, {0, 1, 0, 1, 1, 0})},
                          {"m", ints({2, 3}, {1, 1, 0, 1, 1, 1})}};
  const Arrays fused = run({microsoft("EmbedLayerNormalization", {"i", "t", "we", "pe", "se", "g", "b", "m"},
                                      {"y", "n", "s"}, {{"epsilon", 1e-6f}})},
                           inputs, {"y", "n", "s"}, tables);
  Tensors all = tables;
  all["first"] = longs({3}, {0, 1, 2});
  const Arrays apart = run({{"Gather", {"we", "i"}, {"a"}},
                            {"Gather", {"pe", "first"}, {"p"}},
                            {"Gather", {"se", "t"}, {"c"}},
                            {"Add", {"a", "p"}, {"ap"}},
                            {"Add", {"ap", "c"}, {"s"}},
                            {"LayerNormalization", {"s", "g", "b"}, {"y"}, {{"epsilon", 1e-6f}}}},
                           inputs, {"y", "s"}, all);
  expect_near(fused.at("y"), apart.at("y"));
  expect_near(fused.at("s"), apart.at("s"));
  EXPECT_EQ(fused.at("n").i(), (std::vector<int64_t>{2, 3}));
}

TEST(MatMulNBits, UnpacksTheLowestBitsFirst) {
  // The identity shows the weights: column 0 is 0, 1, 2, .. in 4 bits, column 1 its mirror image.
  std::vector<float> identity(256);
  for (size_t i = 0; i < 16; ++i) identity[i * 17] = 1;
  std::vector<uint8_t> packed;
  for (int i = 0; i < 8; ++i) packed.push_back(static_cast<uint8_t>(2 * i | (2 * i + 1) << 4));
  for (int i = 0; i < 8; ++i) packed.push_back(static_cast<uint8_t>((15 - 2 * i) | (14 - 2 * i) << 4));
  const Attributes four = {{"K", int64_t{16}}, {"N", int64_t{2}}, {"bits", int64_t{4}}, {"block_size", int64_t{16}}};
  const Tensors inputs = {{"a", floats({16, 16}, identity)}};
  const Tensors weights = {
      {"w", bytes({2, 1, 8}, packed)}, {"s", floats({2}, {1, 0.5f})}, {"z", bytes({2}, {3, 0xf1})}};
  std::vector<double> plain, shifted;
  for (int i = 0; i < 16; ++i) {
    plain.insert(plain.end(), {i - 8.0, (15 - i - 8) * 0.5});
    shifted.insert(shifted.end(), {i - 3.0, (15 - i - 1) * 0.5});
  }
  EXPECT_EQ(run({microsoft("MatMulNBits", {"a", "w", "s"}, {"y"}, four)}, inputs, {"y"}, weights).at("y").f(), plain);
  EXPECT_EQ(run({microsoft("MatMulNBits", {"a", "w", "s", "z"}, {"y"}, four)}, inputs, {"y"}, weights).at("y").f(),
            shifted);
  Attributes three = four;
  three["bits"] = int64_t{3};
  EXPECT_THAT(error_of([&] {
                run({microsoft("MatMulNBits", {"a", "w", "s"}, {"y"}, three)}, inputs, {"y"}, weights);
              }),
              ::testing::HasSubstr("3 bits are not supported"));
  Attributes longer = four;
  longer["K"] = int64_t{32};
  EXPECT_THAT(error_of([&] {
                run({microsoft("MatMulNBits", {"a", "w", "s"}, {"y"}, longer)}, inputs, {"y"}, weights);
              }),
              ::testing::HasSubstr("B has 16 elements, 32 expected"));
}

TEST(MatMulNBits, TakesTwoAndEightBitsAndAShortLastBlock) {
  const Tensor a = floats({1, 20}, std::vector<float>(20, 1));
  // 20 numbers in blocks of 16: 1 each in the first block, 3 in the second, whose tail of twelve is not read.
  const Tensors two = {{"w", bytes({1, 2, 4}, {0x55, 0x55, 0x55, 0x55, 0xff, 0xaa, 0xaa, 0xaa})},
                       {"s", floats({1, 2}, {1, 10})},
                       {"z", bytes({1, 1}, {0b0100})}};
  const Attributes of_two = {{"K", int64_t{20}}, {"N", int64_t{1}}, {"bits", int64_t{2}}, {"block_size", int64_t{16}}};
  EXPECT_EQ(run({microsoft("MatMulNBits", {"a", "w", "s", "z"}, {"y"}, of_two)}, {{"a", a}}, {"y"}, two).at("y").f(),
            (std::vector<double>{16 * 1 + 4 * (3 - 1) * 10}));
  std::vector<uint8_t> w(32, 129);
  const Tensors eight = {{"w", bytes({1, 2, 16}, w)}, {"s", floats({1, 2}, {1, 10})}, {"bias", floats({1}, {0.5f})}};
  Attributes of_eight = of_two;
  of_eight["bits"] = int64_t{8};
  EXPECT_EQ(run({microsoft("MatMulNBits", {"a", "w", "s", "", "", "bias"}, {"y"}, of_eight)}, {{"a", a}}, {"y"}, eight)
                .at("y")
                .f(),
            (std::vector<double>{16 + 40 + 0.5}));
}

TEST(MatMulNBits, ColumnsMayBelongToBlocksInAnyOrder) {
  std::vector<uint8_t> w;
  for (int i = 0; i < 32; ++i) w.push_back(static_cast<uint8_t>(37 * i));
  const Attributes four = {{"K", int64_t{32}}, {"N", int64_t{2}}, {"bits", int64_t{4}}, {"block_size", int64_t{16}}};
  const Tensor a = random({3, 32});
  const auto with = [&](std::vector<int32_t> groups, const Tensor& rows) {
    const Tensors weights = {{"w", bytes({2, 2, 8}, w)},
                             {"s", floats({4}, {1, 2, 3, 4})},
                             {"z", bytes({2}, {0x53, 0xf1})},
                             {"g", ints({32}, std::move(groups))}};
    return run({microsoft("MatMulNBits", {"a", "w", "s", "z", "g"}, {"y"}, four)}, {{"a", rows}}, {"y"}, weights)
        .at("y");
  };
  const auto column = [&](const ir::Array& y, int64_t row, int64_t n) {
    return y.f()[static_cast<size_t>(row * 2 + n)];
  };
  const auto expected = [&](const std::vector<int32_t>& groups, int64_t row, int64_t n) {
    const int zeros[2][2] = {{3, 5}, {1, 15}};
    double sum = 0;
    for (int64_t k = 0; k < 32; ++k) {
      const int q = w[static_cast<size_t>(n * 16 + k / 2)] >> (k % 2 * 4) & 15, group = groups[static_cast<size_t>(k)];
      sum += ir::real_at(a, row * 32 + k) * (q - zeros[n][group]) * static_cast<double>(1 + 2 * n + group);
    }
    return sum;
  };
  std::vector<int32_t> sorted, mixed, uneven(32, 0);
  for (int k = 0; k < 32; ++k) sorted.push_back(k / 16), mixed.push_back(k % 2);
  uneven[7] = 1;
  for (const auto& groups : {sorted, mixed, uneven}) {
    const ir::Array y = with(groups, a);
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t n = 0; n < 2; ++n) EXPECT_NEAR(column(y, row, n), expected(groups, row, n), 1e-3);
    }
  }
}

TEST(MatMulBnb4, LooksUpATableWithTheHighestBitsFirst) {
  const Tensors weights = {{"w", bytes({8}, {0x0f, 0x71, 0x77, 0x77, 0x77, 0x77, 0x77, 0x77})},
                           {"s", floats({1}, {2})}};
  const Attributes nf4 = {
      {"K", int64_t{8}}, {"N", int64_t{2}}, {"block_size", int64_t{16}}, {"quant_type", int64_t{1}}};
  const Tensor a = floats({1, 8}, {1, 10, 100, 1000, 0, 0, 0, 0});
  EXPECT_NEAR(run({microsoft("MatMulBnb4", {"a", "w", "s"}, {"y"}, nf4)}, {{"a", a}}, {"y"}, weights).at("y").f()[0],
              2 * (-1 + 10 - 1000 * 0.6961928), 1e-3);
  Attributes fp4 = nf4;
  fp4["quant_type"] = int64_t{0};
  EXPECT_NEAR(run({microsoft("MatMulBnb4", {"a", "w", "s"}, {"y"}, fp4)}, {{"a", a}}, {"y"}, weights).at("y").f()[0],
              2 * (10 * -0.25 + 100 * 0.25 + 1000 * 5.208333333e-03), 1e-3);
  Attributes longer = nf4;
  longer["K"] = int64_t{16};
  EXPECT_THAT(error_of([&] {
                run({microsoft("MatMulBnb4", {"a", "w", "s"}, {"y"}, longer)}, {{"a", a}}, {"y"}, weights);
              }),
              ::testing::HasSubstr("B has 8 elements, 16 expected"));
}

TEST(GatherBlockQuantized, GivesRowsOfTheTableBehindTheBytes) {
  std::vector<uint8_t> table(2 * 16);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(i);
  const Tensors weights = {{"d", bytes({2, 16}, table)}, {"s", floats({2, 2}, {1, 2, 3, 4})}};
  const Attributes four = {{"bits", int64_t{4}}, {"block_size", int64_t{16}}};
  const ir::Array y =
      run({microsoft("GatherBlockQuantized", {"d", "i", "s"}, {"y"}, four)}, {{"i", longs({1}, {1})}}, {"y"}, weights)
          .at("y");
  ASSERT_EQ(y.shape, (Shape{1, 32}));
  EXPECT_EQ(y.f()[0], (0 - 8) * 3);  // byte 0x10
  EXPECT_EQ(y.f()[1], (1 - 8) * 3);
  EXPECT_EQ(y.f()[30], (15 - 8) * 4);  // byte 0x1f
}

TEST(QuantisedByMicrosoft, GemmScalesAnIntegerProduct) {
  const Tensors weights = {{"as", floats({}, {0.5})},   {"az", bytes({}, {1})},     {"w", chars({2, 2}, {1, 2, 3, -4})},
                           {"ws", floats({2}, {1, 2})}, {"wz", chars({2}, {0, 1})}, {"c", ints({2}, {10, 20})},
                           {"ys", floats({}, {2})},     {"yz", bytes({}, {100})}};
  const Tensors inputs = {
      {"a", bytes({1, 2}, {3, 5})}};  // 2 and 4; transposed weights less zero points: 1 2, 3 -4 by columns 1 2 | 2 -5
  const Attributes transposed = {{"transB", int64_t{1}}};
  const auto product = [&](std::vector<std::string> more) {
    std::vector<std::string> names = {"a", "as", "az", "w", "ws", "wz", "c"};
    names.insert(names.end(), more.begin(), more.end());
    return run({microsoft("QGemm", names, {"y"}, transposed)}, inputs, {"y"}, weights).at("y");
  };
  // Rows of W are columns of the product: [1, 2] - 0 and [3, -4] - 1 = [2, -5].
  EXPECT_EQ(product({}).f(), (std::vector<double>{0.5 * (2 * 1 + 4 * 2 + 10), (2 * 2 - 4 * 5 + 20)}));
  EXPECT_EQ(product({"ys", "yz"}).i(), (std::vector<int64_t>{105, 102}));
}

TEST(QuantisedByMicrosoft, PoolsMeansAndChoicesGoThroughTheNumbersBehind) {
  const Tensors scales = {
      {"s", floats({}, {2})}, {"z", bytes({}, {10})}, {"t", floats({}, {1})}, {"u", bytes({}, {20})}};
  const Tensor x = bytes({1, 1, 2, 2}, {10, 11, 12, 15});  // 0 2 4 10
  const std::vector<std::string> names = {"x", "s", "z", "t", "u"};
  const Attributes window = {{"kernel_shape", std::vector<int64_t>{1, 2}}};
  EXPECT_EQ(run({microsoft("QLinearAveragePool", names, {"y"}, window)}, {{"x", x}}, {"y"}, scales).at("y").i(),
            (std::vector<int64_t>{21, 27}));
  Attributes last = window;
  last["channels_last"] = int64_t{1};
  const Arrays pooled = run({microsoft("QLinearAveragePool", names, {"y"}, last)},
                            {{"x", bytes({1, 1, 2, 2}, {10, 11, 12, 15})}}, {"y"}, scales);
  EXPECT_EQ(pooled.at("y").i(), (std::vector<int64_t>{22, 26}));  // each channel by itself
  EXPECT_EQ(pooled.at("y").shape, (Shape{1, 1, 1, 2}));
  const Attributes rows = {{"axes", std::vector<int64_t>{3}}, {"keepdims", int64_t{0}}};
  EXPECT_EQ(run({microsoft("QLinearReduceMean", names, {"y"}, rows)}, {{"x", x}}, {"y"}, scales).at("y").i(),
            (std::vector<int64_t>{21, 27}));
  Tensors more = scales;
  more["c"] = Tensor::of<uint8_t>(DType::kBool, {2}, {1, 0});
  const Arrays chosen = run({microsoft("QLinearWhere", {"c", "x", "s", "z", "v", "t", "u", "t", "u"}, {"y"})},
                            {{"x", bytes({2}, {12, 12})}, {"v", bytes({2}, {50, 50})}}, {"y"}, more);
  EXPECT_EQ(chosen.at("y").i(), (std::vector<int64_t>{24, 50}));
}

TEST(QuantisedByMicrosoft, SoftmaxTakesOneAxisSinceOpset13AndAllFromItBefore) {
  const Tensors scales = {
      {"s", floats({}, {1})}, {"z", bytes({}, {0})}, {"t", floats({}, {1 / 256.f})}, {"u", bytes({}, {0})}};
  const Tensors inputs = {{"x", bytes({1, 2, 2}, {5, 5, 5, 5})}};
  const auto softmax = [&](int64_t opset) {
    return run({microsoft("QLinearSoftmax", {"x", "s", "z", "t", "u"}, {"y"},
                          {{"axis", int64_t{1}}, {"opset", opset}})},
               inputs, {"y"}, scales)
        .at("y")
        .i();
  };
  EXPECT_EQ(softmax(13), std::vector<int64_t>(4, 128));
  EXPECT_EQ(softmax(11), std::vector<int64_t>(4, 64));
}

TEST(QuantisedByMicrosoft, ConvolutionAndMaximumTakeChannelsLast) {
  const Tensors weights = {{"s", floats({}, {1})}, {"z", bytes({}, {0})}, {"w", chars({1, 2, 1, 1}, {1, 10})}};
  const Attributes last = {{"channels_last", int64_t{1}}};
  const Tensor x = bytes({1, 1, 2, 2}, {1, 2, 3, 4});  // two pixels of two channels
  Tensors all = weights;
  all["wz"] = chars({}, {0});
  const Arrays y =
      run({microsoft("QLinearConv", {"x", "s", "z", "w", "s", "wz", "s", "z"}, {"y"}, last)}, {{"x", x}}, {"y"}, all);
  EXPECT_EQ(y.at("y").i(), (std::vector<int64_t>{21, 43}));
  EXPECT_EQ(y.at("y").shape, (Shape{1, 1, 2, 1}));
  const Arrays m =
      run({microsoft("NhwcMaxPool", {"x"}, {"y"}, {{"kernel_shape", std::vector<int64_t>{1, 2}}})}, {{"x", x}}, {"y"});
  EXPECT_EQ(m.at("y").i(), (std::vector<int64_t>{3, 4}));
}

TEST(QuantisedByMicrosoft, DynamicProductRoundsItsLeftOperandToBytes) {
  // The range is [0, 255], so that the numbers are their bytes.
  const Tensors weights = {
      {"w", chars({3, 2}, {1, 2, 3, 4, 5, 6})}, {"ws", floats({2}, {1, 0.5})}, {"bias", floats({2}, {0, 1})}};
  EXPECT_EQ(run({microsoft("DynamicQuantizeMatMul", {"x", "w", "ws", "", "bias"}, {"y"})},
                {{"x", floats({1, 3}, {1, 2, 255})}}, {"y"}, weights)
                .at("y")
                .f(),
            (std::vector<double>{1 + 6 + 255 * 5, (2 + 8 + 255 * 6) * 0.5 + 1}));
}

// Rounds numbers as DynamicQuantizeLinear does: with one scale for the range of all of them.
std::vector<double> rounded(const std::vector<double>& x) {
  const auto low = static_cast<float>(std::min(0.0, *std::min_element(x.begin(), x.end())));
  const auto high = static_cast<float>(std::max(0.0, *std::max_element(x.begin(), x.end())));
  const float scale = high == low ? 1 : (high - low) / 255;
  const double zero = std::nearbyint(-low / scale);
  std::vector<double> result;
  for (const double v : x) {
    const double q = std::clamp(std::nearbyint(static_cast<float>(v) / scale) + zero, 0.0, 255.0);
    result.push_back((q - zero) * scale);
  }
  return result;
}

// Weights [rows, 4 * hidden] of bytes.
struct ByteWeights {
  std::vector<int8_t> q;
  std::vector<float> scale;
  std::vector<int8_t> zero;
  int64_t columns;

  double at(int64_t row, int64_t column) const {
    const auto i = static_cast<size_t>(scale.size() == 1 ? 0 : column);
    return (q[static_cast<size_t>(row * columns + column)] - zero[i]) * static_cast<double>(scale[i]);
  }
};

// Rounds as ONNX Runtime does: the whole input at once, up to the end of the longest sequence, and the state of all
// sequences in each step.
TEST(QuantisedByMicrosoft, LstmRoundsTheOperandsOfItsProducts) {
  constexpr int32_t length = 3;
  const int64_t steps = 4, batch = 2, hidden = 2, inputs = 3, columns = 4 * hidden;
  ByteWeights w{{}, {0.05f}, {3}, columns}, r{{}, {}, std::vector<int8_t>(8, 1), columns};
  for (int64_t i = 0; i < inputs * columns; ++i) w.q.push_back(static_cast<int8_t>(i * 7 % 31 - 15));
  for (int64_t i = 0; i < hidden * columns; ++i) r.q.push_back(static_cast<int8_t>(i * 11 % 29 - 14));
  for (int64_t i = 0; i < columns; ++i) r.scale.push_back(i % 2 == 0 ? .1f : .2f);
  Tensor x = random({steps, batch, inputs});
  const Tensor bias = random({1, 2 * columns});
  const int64_t used = length * batch * inputs;
  for (float& rest : x.mutable_values<float>().subspan(used)) rest = 100;
  const Tensors weights = {{"w", chars({1, inputs, columns}, w.q)},
                           {"r", chars({1, hidden, columns}, r.q)},
                           {"b", bias},
                           {"ws", floats({1}, w.scale)},
                           {"wz", chars({1}, w.zero)},
                           {"lengths", ints({batch}, {length, length})},
                           {"rs", floats({1, columns}, r.scale)},
                           {"rz", chars({1, columns}, r.zero)}};
  const Arrays fused =
      run({microsoft("DynamicQuantizeLSTM", {"x", "w", "r", "b", "lengths", "", "", "", "ws", "wz", "rs", "rz"},
                     {"y", "h", "c"}, {{"hidden_size", hidden}})},
          {{"x", x}}, {"y", "h", "c"}, weights);

  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const std::vector<double> all = rounded({x.values<float>().begin(), x.values<float>().begin() + used});
  std::vector<double> h(batch * hidden), c(batch * hidden), y;
  for (int64_t t = 0; t < length; ++t) {
    const std::vector<double> before = rounded(h);
    for (int64_t row = 0; row < batch; ++row) {
      std::vector<double> sums;
      for (int64_t n = 0; n < columns; ++n) {
        double sum = bias.values<float>()[n] + bias.values<float>()[columns + n];
        for (int64_t k = 0; k < inputs; ++k) sum += all[(t * batch + row) * inputs + k] * w.at(k, n);
        for (int64_t k = 0; k < hidden; ++k) sum += before[row * hidden + k] * r.at(k, n);
        sums.push_back(sum);
      }
      for (int64_t u = 0; u < hidden; ++u) {
        double& cell = c[row * hidden + u];
        cell = sigmoid(sums[2 * hidden + u]) * cell + sigmoid(sums[u]) * std::tanh(sums[3 * hidden + u]);
        h[row * hidden + u] = sigmoid(sums[hidden + u]) * std::tanh(cell);
      }
    }
    y.insert(y.end(), h.begin(), h.end());
  }
  y.resize(steps * batch * hidden);
  using ::testing::DoubleNear, ::testing::Pointwise;
  EXPECT_THAT(fused.at("y").f(), Pointwise(DoubleNear(1e-6), y));
  EXPECT_THAT(fused.at("h").f(), Pointwise(DoubleNear(1e-6), h));
  EXPECT_THAT(fused.at("c").f(), Pointwise(DoubleNear(1e-6), c));
}

TEST(MicrosoftNorms, GroupsOfChannelsThatAreLast) {
  const Tensors weights = {{"g", random({6})}, {"b", random({6})}, {"bias", random({6})}};
  const Tensors inputs = {{"x", random({2, 3, 4, 6})}, {"skip", random({2, 6})}};
  const Attributes groups = {{"groups", int64_t{2}}, {"activation", int64_t{1}}};
  const Arrays fused = run({microsoft("SkipGroupNorm", {"x", "g", "b", "skip", "bias"}, {"y", "s"}, groups)}, inputs,
                           {"y", "s"}, weights);
  Tensors all = weights;
  all["axes"] = longs({2}, {1, 2});
  const Arrays apart = run({{"Unsqueeze", {"skip", "axes"}, {"k"}},
                            {"Add", {"x", "k"}, {"xk"}},
                            {"Add", {"xk", "bias"}, {"s"}},
                            {"Transpose", {"s"}, {"st"}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}}},
                            {"GroupNormalization", {"st", "g", "b"}, {"n"}, {{"num_groups", int64_t{2}}}},
                            {"Sigmoid", {"n"}, {"gate"}},
                            {"Mul", {"n", "gate"}, {"a"}},
                            {"Transpose", {"a"}, {"y"}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}}}},
                           inputs, {"y", "s"}, all);
  expect_near(fused.at("y"), apart.at("y"));
  expect_near(fused.at("s"), apart.at("s"));
  expect_near(run({microsoft("GroupNorm", {"s", "g", "b"}, {"y"}, groups)}, {{"s", ir::to_tensor(apart.at("s"))}},
                  {"y"}, weights)
                  .at("y"),
              apart.at("y"), 1e-5);
}

TEST(MicrosoftNorms, LayerNormalizationIsKnownInOpsetsBeforeTheStandardHadIt) {
  const Tensors weights = {{"g", random({4})}, {"b", random({4})}};
  const Tensors x = {{"x", random({2, 4})}};
  const std::vector<NodeSpec> norm = {{"LayerNormalization", {"x", "g", "b"}, {"y"}}};
  expect_near(run(norm, x, {"y"}, weights, 12).at("y"), run(norm, x, {"y"}, weights, 17).at("y"));
}

TEST(MicrosoftConv, HasChannelsLastInItsWeightsToo) {
  const Tensors inputs = {{"x", random({1, 4, 5, 6})}, {"w", random({8, 3, 3, 3})}, {"b", random({8})}};
  const Attributes padded = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}, {"group", int64_t{2}}};
  const Attributes first = {{"perm", std::vector<int64_t>{0, 3, 1, 2}}},
                   last = {{"perm", std::vector<int64_t>{0, 2, 3, 1}}};
  const Arrays apart = run({{"Transpose", {"x"}, {"xt"}, first},
                            {"Transpose", {"w"}, {"wt"}, first},
                            {"Conv", {"xt", "wt", "b"}, {"c"}, padded},
                            {"Transpose", {"c"}, {"y"}, last}},
                           inputs, {"y"});
  expect_near(run({microsoft("NhwcConv", {"x", "w", "b"}, {"y"}, padded)}, inputs, {"y"}).at("y"), apart.at("y"));
}

TEST(MicrosoftElementwise, SplitGeluAndBiasAdd) {
  const Tensors inputs = {{"x", floats({1, 1, 4}, {1, 2, 0, 10})}, {"k", floats({1, 1, 4}, {1, 1, 1, 1})}};
  const Tensors weights = {{"b", floats({4}, {1, 0, 0, 10})}};
  const ir::Array y = run({microsoft("BiasSplitGelu", {"x", "b"}, {"y"})}, inputs, {"y"}, weights).at("y");
  ASSERT_EQ(y.shape, (Shape{1, 1, 2}));
  EXPECT_NEAR(y.f()[0], 0, 1e-6);   // 2 * gelu(0)
  EXPECT_NEAR(y.f()[1], 40, 1e-5);  // 2 * gelu(20)
  EXPECT_EQ(run({microsoft("BiasAdd", {"x", "b", "k"}, {"y"})}, inputs, {"y"}, weights).at("y").f(),
            (std::vector<double>{3, 3, 1, 21}));
}

}  // namespace
}  // namespace heddle::onnx
