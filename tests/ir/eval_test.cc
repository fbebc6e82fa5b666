#include "ir/reference/eval.h"

#include <cmath>

#include "ir/builder.h"
#include "ir/schema.h"
#include "tests/ir/testing.h"

namespace heddle::ir::testing {
namespace {

TEST(Schema, EveryPrimitiveHasOne) {
  for (int op = 0; op <= static_cast<int>(Op::kCall); ++op) {
    if (!parse_op(to_string(static_cast<Op>(op)))) continue;  // of the tile IR alone
    EXPECT_NO_THROW({
      const OpSchema& s = schema(static_cast<Op>(op));
      EXPECT_EQ(s.op, static_cast<Op>(op));
      EXPECT_NE(s.infer, nullptr);
      EXPECT_EQ(s.eval == nullptr, s.op == Op::kParameter);
    }) << to_string(static_cast<Op>(op));
  }
}

TEST(Evaluate, ChecksItsInputs) {
  Graph graph;
  const ValueId x = graph.parameter("x", {DType::kF32, {2}});
  graph.output("y", x);
  const auto message = [&](std::vector<Array> inputs) {
    try {
      evaluate(graph, std::move(inputs));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidInput);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message({}).find("0 inputs given, the graph has 1"), std::string::npos);
  EXPECT_NE(message({reals({2}, {1, 2}, DType::kF64)}).find("f64[2] given, f32[2] expected"), std::string::npos);
  EXPECT_NE(message({reals({1}, {1}, DType::kF32)}).find("input x: f32[1] given"), std::string::npos);
}

TEST(Evaluate, OneValueMayBeSeveralOutputs) {
  Graph graph;
  Builder g(graph);
  const ValueId x = graph.parameter("x", {DType::kF64, {2}});
  const ValueId y = g.add(x, x);
  const ValueId c = g.constant(Tensor::of<double>(DType::kF64, {1}, {7}));
  graph.output("a", y);
  graph.output("b", x);
  graph.output("c", y);
  graph.output("d", c);
  graph.output("e", c);
  const auto r = evaluate(graph, {reals({2}, {1, 2})});
  ASSERT_EQ(r.size(), 5u);
  EXPECT_EQ(r[0].f(), (std::vector<double>{2, 4}));
  EXPECT_EQ(r[1].f(), (std::vector<double>{1, 2}));
  EXPECT_EQ(r[2].f(), r[0].f());
  EXPECT_EQ(r[3].f(), r[4].f());
}

TEST(Evaluate, ObservesComputedValuesInOrderAndSkipsDeadOnes) {
  Graph graph;
  Builder g(graph);
  const ValueId x = graph.parameter("x", {DType::kF64, {}});
  const ValueId a = g.unary(Op::kExp, x);
  const ValueId bad = g.gather(g.broadcast_to(x, {1}), g.ints({5}), 0);  // would be out of range
  const ValueId b = g.unary(Op::kLog, a);
  graph.output("y", b);
  std::vector<ValueId> seen;
  const auto r = evaluate(graph, {reals({}, {3})}, {.round = false, .observe = [&](ValueId v, const Array& array) {
                                                      seen.push_back(v);
                                                      EXPECT_EQ(array.size(), 1);
                                                    }});
  EXPECT_EQ(seen, (std::vector<ValueId>{a, b}));
  EXPECT_NE(bad, b);
  EXPECT_DOUBLE_EQ(r[0].f()[0], 3);
}

TEST(Evaluate, RoundModeStoresEveryResultInItsType) {
  Graph graph;
  Builder g(graph);
  const ValueId x = graph.parameter("x", {DType::kF16, {}});
  const ValueId y = g.sub(g.add(x, g.scalar(DType::kF16, 1)), x);
  graph.output("y", y);
  const Array input = reals({}, {4096}, DType::kF16);
  EXPECT_EQ(evaluate(graph, {input}, {.round = true, .observe = {}})[0].f()[0], 0);  // 4097 is no f16
  EXPECT_EQ(evaluate(graph, {input})[0].f()[0], 1);
}

TEST(Evaluate, ErrorsOfDataNameTheModelsNode) {
  Graph graph;
  Builder g(graph);
  const ValueId x = graph.parameter("x", {DType::kF64, {3}});
  const ValueId i = graph.parameter("i", {DType::kI64, {1}});
  g.set_origins({graph.origin({"embed", "Gather"})});
  graph.output("y", g.gather(x, i, 0));
  try {
    evaluate(graph, {reals({3}, {1, 2, 3}), integers({1}, {9})});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kValueOutOfRange);
    EXPECT_EQ(error.where(), "gather of embed (Gather)");
    EXPECT_EQ(error.why(), "index 9 is outside [-3, 3)");
  }
}

// A chain whose values would need 1.6 GB if none were freed. The address sanitizer keeps what was freed for a while.
TEST(Evaluate, FreesValuesAfterTheirLastUse) {
  Graph graph;
  Builder g(graph);
  ValueId v = graph.parameter("x", {DType::kF64, {1 << 20}});
  for (int i = 0; i < 200; ++i) v = g.unary(Op::kNeg, v);
  graph.output("y", g.reduce("sum", v, {0}));
  const auto peak_kb = [] {
    long kb = 0;
    if (FILE* file = std::fopen("/proc/self/status", "r")) {
      char line[256];
      while (std::fgets(line, sizeof line, file)) std::sscanf(line, "VmHWM: %ld", &kb);
      std::fclose(file);
    }
    return kb;
  };
  const long before = peak_kb();
  EXPECT_EQ(evaluate(graph, {random_array(DType::kF64, {1 << 20}, 1, 2, 2)})[0].f()[0], 2.0 * (1 << 20));
#if defined(__SANITIZE_ADDRESS__)
  constexpr long kKeptKb = 256 * 1024;
#else
  constexpr long kKeptKb = 0;
#endif
  EXPECT_LT(peak_kb() - before, 200 * 1024 + kKeptKb);
}

TEST(Random, PhiloxIsReproducibleAndInRange) {
  const auto draw = [](const char* kind, DType dtype, int64_t seed, Shape shape) {
    return eval_op(Op::kRandom, {}, {{"kind", kind}, {"dtype", dtype}, {"shape", std::move(shape)}, {"seed", seed}},
                   true)[0];
  };
  // The generator's published test vector: counter 0, key 0 -> 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
  EXPECT_EQ(draw("uniform", DType::kF32, 0, {1}).f()[0], 0x6627e8 * 0x1p-24);
  EXPECT_EQ(draw("uniform", DType::kF64, 0, {1}).f()[0],
            std::ldexp(static_cast<double>(0x6627e8d5e169c58d >> 11), -53));
  EXPECT_EQ(draw("uniform", DType::kF32, 5, {3, 7}).f(), draw("uniform", DType::kF32, 5, {21}).f());
  EXPECT_NE(draw("uniform", DType::kF32, 5, {21}).f(), draw("uniform", DType::kF32, 6, {21}).f());
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    double sum = 0, square = 0;
    const Array uniform = draw("uniform", dtype, 1, {20000}), normal = draw("normal", dtype, 1, {20000});
    for (double v : uniform.f()) {
      ASSERT_GE(v, 0);
      ASSERT_LT(v, 1);
      sum += v;
    }
    EXPECT_NEAR(sum / 20000, 0.5, 0.01) << to_string(dtype);
    sum = 0;
    for (double v : normal.f()) sum += v, square += v * v;
    EXPECT_NEAR(sum / 20000, 0, 0.03) << to_string(dtype);
    EXPECT_NEAR(square / 20000, 1, 0.03) << to_string(dtype);
  }
}

TEST(Iota, CountsAlongItsDimension) {
  const Attrs attrs{{"dtype", DType::kU8}, {"shape", Ints{2, 300, 3}}, {"dim", int64_t{1}}};
  expect_elements(eval_op(Op::kIota, {}, attrs)[0],
                  [](const Coordinates& c) { return static_cast<double>(c[1] % 256); });
}

TEST(Array, RoundTripsEveryType) {
  for (int t = 0; t < static_cast<int>(DType::kString); ++t) {
    const auto dtype = static_cast<DType>(t);
    Tensor tensor(dtype, {256});
    auto* bytes = static_cast<uint8_t*>(tensor.mutable_data());
    const uint32_t mask = bits_of(dtype) < 8 ? (1u << bits_of(dtype)) - 1 : 0xff;
    std::mt19937 random(1);
    for (size_t i = 0; i < tensor.bytes(); ++i) {
      const uint32_t code = size_of(dtype) == 1 ? static_cast<uint32_t>(i) : random();
      bytes[i] = static_cast<uint8_t>(dtype == DType::kBool ? code % 2 : code & mask);
    }
    const Array array = to_array(tensor);
    const Array again = to_array(to_tensor(array));
    ASSERT_EQ(array.real(), is_float(dtype));
    for (size_t i = 0; i < 256; ++i) {
      if (!array.real()) {
        EXPECT_EQ(array.i()[i], again.i()[i]) << heddle::to_string(dtype);
      } else if (std::isnan(array.f()[i])) {
        EXPECT_TRUE(std::isnan(again.f()[i]));
      } else {
        EXPECT_EQ(array.f()[i], again.f()[i]) << heddle::to_string(dtype);
      }
    }
  }
}

TEST(Array, WrapsToTheType) {
  EXPECT_EQ(wrap(DType::kI4, 8), -8);
  EXPECT_EQ(wrap(DType::kU2, -1), 3);
  EXPECT_EQ(wrap(DType::kI64, INT64_MIN), INT64_MIN);
  EXPECT_EQ(wrap(DType::kBool, 256), 1);
}

TEST(Array, TooLargeIsAnErrorNotACrash) {
  try {
    Array array(DType::kF32, {int64_t{1} << 60});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  }
}

}  // namespace
}  // namespace heddle::ir::testing
