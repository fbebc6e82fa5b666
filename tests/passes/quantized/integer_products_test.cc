#include <fmt/format.h>

#include <random>

#include "tests/passes/pass_test_util.h"

// Products of dequantised operands, in integers.
namespace heddle::passes {
namespace {

Target target_of(bool vnni) {
  Target target;
  target.cpu.isa = vnni ? CpuIsa::kAvx512 : CpuIsa::kAvx2;
  target.cpu.avx512_vnni = vnni;
  return target;
}

ir::Graph integers(const ir::Graph& graph, const Target& target) {
  return run_passes(graph, std::vector<std::string>{"integer_products", "dce"}, {target, Precision::kF32});
}

ir::Graph integers(const ir::Graph& graph, bool vnni) {
  return integers(graph, target_of(vnni));
}

int count_of(const ir::Graph& graph, ir::Op op, DType operand) {
  int count = 0;
  for (const ir::Node& node : graph.nodes()) count += node.op == op && graph.dtype(node.inputs[0]) == operand;
  return count;
}

// A dequantised value of `type`, a parameter or a constant. `dim` < 0: one scale and zero point, else one for each
// index.
std::string dequantised(const std::string& name, const std::string& type, const std::string& shape, int dim, int extent,
                        bool has_zero) {
  const std::string small = dim < 0 ? "" : fmt::format("{}", extent), dims = dim < 0 ? "" : fmt::format("{}", dim);
  std::string text = fmt::format(R"(
    %{0}s = constant {{value = f32[{3}]{{{5}}}}}
    %{0}S = broadcast(%{0}s) {{shape = [{2}], dims = [{4}]}} : f32[{2}]
    %{0}i = cast(%{0}) {{to = i32}} : i32[{2}]
)",
                                 name, type, shape, small, dims, dim < 0 ? "0.013" : "SCALES");
  std::string q = name + "i";
  if (has_zero) {
    text += fmt::format(R"(
    %{0}z = constant {{value = {1}[{3}]{{{5}}}}}
    %{0}c = cast(%{0}z) {{to = i32}} : i32[{3}]
    %{0}Z = broadcast(%{0}c) {{shape = [{2}], dims = [{4}]}} : i32[{2}]
    %{0}d = sub(%{0}i, %{0}Z) : i32[{2}]
)",
                        name, type, shape, small, dims, dim < 0 ? "3" : "ZEROS");
    q = name + "d";
  }
  text += fmt::format(R"(
    %{0}f = cast(%{1}) {{to = f32}} : f32[{2}]
    %{0}F = mul(%{0}f, %{0}S) : f32[{2}]
)",
                      name, q, shape);
  const auto fill = [&](const std::string& word, double first, double step) {
    std::string list;
    for (int i = 0; i < extent; ++i) list += fmt::format("{}{}", i > 0 ? ", " : "", first + step * i);
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word))
      text.replace(at, word.size(), list);
  };
  fill("SCALES", 0.01, 0.001);
  fill("ZEROS", 1, 2);
  return text;
}

std::string constant_of(const std::string& type, const std::string& shape, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::string list;
  for (int64_t i = 0; i < count; ++i) {
    const int value = static_cast<int>(random() % 256) - (type == "i8" ? 128 : 0);
    list += fmt::format("{}{}", i > 0 ? ", " : "", value);
  }
  return fmt::format("{}[{}]{{{}}}", type, shape, list);
}

TEST(IntegerProducts, DotsOfEveryTypeAndParameter) {
  for (const char* a : {"u8", "i8"}) {
    for (const char* b : {"u8", "i8"}) {
      for (int zeros = 0; zeros < 4; ++zeros) {
        for (const int dim : {-1, 1}) {
          for (const bool vnni : {true, false}) {
            const std::string text =
                fmt::format("graph g(%x: {}[5,7]) {{\n%w = constant {{value = {}}}\n{}{}", a,
                            constant_of(b, "7,6", 42, 3), dequantised("x", a, "5,7", -1, 1, zeros & 1),
                            dequantised("w", b, "7,6", dim, 6, zeros & 2)) +
                R"(%y = dot(%xF, %wF) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f32[5,6]
                return "y" = %y
              })";
            SCOPED_TRACE(text);
            const ir::Graph before = ir::parse(text), after = integers(before, vnni);
            EXPECT_EQ(count_of(after, ir::Op::kDot, vnni ? DType::kU8 : DType::kI16), 1);
            expect_same(before, after, 1e-6);
          }
        }
      }
    }
  }
}

TEST(IntegerProducts, TwoValuesThroughMovements) {
  for (const bool vnni : {true, false}) {
    const std::string text = "graph g(%x: u8[2,5,12], %w: i8[2,4,12]) {\n" +
                             dequantised("x", "u8", "2,5,12", -1, 1, true) +
                             dequantised("w", "i8", "2,4,12", -1, 1, true) + R"(
      %0 = reshape(%xF) {shape = [2,5,3,4]} : f32[2,5,3,4]
      %1 = transpose(%0) {perm = [0,2,1,3]} : f32[2,3,5,4]
      %2 = reshape(%wF) {shape = [2,4,3,4]} : f32[2,4,3,4]
      %3 = transpose(%2) {perm = [0,2,3,1]} : f32[2,3,4,4]
      %y = dot(%1, %3) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]} : f32[2,3,5,4]
      return "y" = %y
    })";
    const ir::Graph before = ir::parse(text), after = integers(before, vnni);
    EXPECT_EQ(count_of(after, ir::Op::kDot, vnni ? DType::kU8 : DType::kI16), 1);
    expect_same(before, after, 1e-6);
  }
}

struct Conv {
  int channels, features, groups, kernel, stride, dilation, low;
};

TEST(IntegerProducts, Convolutions) {
  for (const Conv& c :
       {Conv{4, 6, 1, 3, 1, 1, 1}, {3, 5, 1, 3, 2, 1, 0}, {6, 6, 6, 3, 1, 2, 2}, {6, 4, 2, 1, 1, 1, 0}}) {
    for (const char* type : {"u8", "i8"}) {
      for (int zeros = 0; zeros < 4; ++zeros) {
        for (const bool vnni : {true, false}) {
          const int out = (9 + 2 * c.low - (c.kernel - 1) * c.dilation - 1) / c.stride + 1;
          const std::string x = fmt::format("2,{},9,9", c.channels),
                            w = fmt::format("{},{},{},{}", c.features, c.channels / c.groups, c.kernel, c.kernel);
          const std::string text =
              fmt::format("graph g(%x: {}[{}]) {{\n%w = constant {{value = {}}}\n{}{}", type, x,
                          constant_of("i8", w, c.features * c.channels / c.groups * c.kernel * c.kernel, 4),
                          dequantised("x", type, x, -1, 1, zeros & 1),
                          dequantised("w", "i8", w, 0, c.features, zeros & 2)) +
              fmt::format(
                  R"(%y = conv(%xF, %wF) {{strides = [{0},{0}], low = [{1},{1}], high = [{1},{1}], dilations = [{2},{2}], lhs_dilations = [1,1], groups = {3}, layout = "nchw"}} : f32[2,{4},{5},{5}]
              return "y" = %y
            }})",
                  c.stride, c.low, c.dilation, c.groups, c.features, out);
          SCOPED_TRACE(text);
          const ir::Graph before = ir::parse(text), after = integers(before, vnni);
          EXPECT_EQ(count_of(after, ir::Op::kConv, vnni && !(zeros & 2) ? DType::kU8 : DType::kI16), 1);
          expect_same(before, after, 1e-6);
        }
      }
    }
  }
}

// First operands keep their type, so that a zero point of 0 needs no padding. Filters with a zero point stay floats.
TEST(IntegerProducts, ConvolutionsOnAGpu) {
  for (const std::string type : {"u8", "i8"}) {
    for (int zeros = 0; zeros < 4; ++zeros) {
      const std::string text =
          fmt::format("graph g(%x: {}[1,4,6,6]) {{\n%w = constant {{value = {}}}\n{}{}", type,
                      constant_of("i8", "5,4,3,3", 180, 6), dequantised("x", type, "1,4,6,6", -1, 1, zeros & 1),
                      dequantised("w", "i8", "5,4,3,3", 0, 5, zeros & 2)) +
          R"(%y = conv(%xF, %wF) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"} : f32[1,5,6,6]
        return "y" = %y
      })";
      SCOPED_TRACE(text);
      const ir::Graph before = ir::parse(text), after = integers(before, Target::cuda_h200(1));
      const DType operand = (zeros & 2) != 0 ? DType::kF32 : type == "u8" ? DType::kU8 : DType::kI8;
      EXPECT_EQ(count_of(after, ir::Op::kConv, operand), 1);
      EXPECT_EQ(count_of(after, ir::Op::kPad, operand), (zeros & 2) == 0 ? zeros & 1 : 0);
      expect_same(before, after, 1e-6);
    }
  }
}

// Unsigned filters without a zero point get one when they become signed bytes.
TEST(IntegerProducts, ConvolutionsWithUnsignedFilters) {
  for (const bool has_zero : {false, true}) {
    const std::string text =
        fmt::format("graph g(%x: u8[1,4,6,6]) {{\n%w = constant {{value = {}}}\n{}{}",
                    constant_of("u8", "5,4,3,3", 180, 6), dequantised("x", "u8", "1,4,6,6", -1, 1, true),
                    dequantised("w", "u8", "5,4,3,3", -1, 1, has_zero)) +
        R"(%y = conv(%xF, %wF) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"} : f32[1,5,6,6]
      return "y" = %y
    })";
    for (const std::string& zero : {"{3}", "{128}"}) {
      std::string with = text;
      const size_t at = with.find("%wz = constant {value = u8[]{3}}");
      if (at != std::string::npos) with.replace(with.find("{3}", at), 3, zero);
      for (const bool vnni : {true, false}) {
        const ir::Graph before = ir::parse(with), after = integers(before, vnni);
        const bool in_bytes = vnni && has_zero && zero == "{128}";
        EXPECT_EQ(count_of(after, ir::Op::kConv, in_bytes ? DType::kU8 : DType::kI16), 1) << with;
        expect_same(before, after, 1e-6);
      }
    }
  }
}

// What `explain` reports about products with quantised operands.
TEST(IntegerProducts, SayHowTheyAreComputed) {
  const auto products_of = [](const std::string& operands, const std::string& a, const std::string& w) {
    const std::string text = operands + fmt::format(R"(
      %y = dot({}, {}) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} : f32[5,6]
      return "y" = %y
    }})",
                                                    a, w);
    const Target target = target_of(true);
    return find_quantised_products(ir::parse(text), {target, Precision::kF32});
  };
  const auto operands = [](int w_dim) {
    return fmt::format("graph g(%x: u8[5,7], %f: f32[5,7]) {{\n%w = constant {{value = {}}}\n{}{}",
                       constant_of("i8", "7,6", 42, 3), dequantised("x", "u8", "5,7", -1, 1, true),
                       dequantised("w", "i8", "7,6", w_dim, w_dim == 0 ? 7 : 6, false));
  };
  using Form = QuantisedProduct::Form;
  QuantisedProducts found = products_of(operands(1), "%xF", "%wF");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].form, Form::kIntegers);
  EXPECT_EQ(found[0].bits, 8);
  EXPECT_TRUE(found[0].of_two);
  EXPECT_EQ(found[0].saved_bytes, 3 * 42);
  found = products_of(operands(0), "%xF", "%wF");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].form, Form::kFloats);
  EXPECT_EQ(found[0].reason, "a scale changes along the sum");
  found = products_of(operands(1), "%f", "%wF");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].form, Form::kPacked);
  EXPECT_EQ(found[0].saved_bytes, 3 * 42 - 4 * 6);
  found = products_of(operands(0), "%f", "%wF");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].reason, "one operand is not quantised");
  EXPECT_FALSE(found[0].of_two);
}

// Products of bytes themselves, as of MatMulInteger and ConvInteger, have no scales.
TEST(IntegerProducts, OfIntegersSayHowTheyAreComputed) {
  const Target target = target_of(true);
  const auto products_of = [&](const std::string& filters, const std::string& constant) {
    return find_quantised_products(ir::parse(fmt::format(R"(graph g(%x: u8[1,4,6,6]{}) {{
      {}
      %y = conv(%x, %w) {{strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw", out = i32}} : i32[1,5,4,4]
      return "y" = %y
    }})",
                                                         filters, constant)),
                                   {target, Precision::kF32});
  };
  using Form = QuantisedProduct::Form;
  const QuantisedProducts packed =
      products_of("", fmt::format("%w = constant {{value = {}}}", constant_of("i8", "5,4,3,3", 180, 6)));
  ASSERT_EQ(packed.size(), 1u);
  EXPECT_EQ(packed[0].form, Form::kIntegers);
  const QuantisedProducts computed = products_of(", %w: u8[5,4,3,3]", "");
  ASSERT_EQ(computed.size(), 1u);
  EXPECT_EQ(computed[0].form, Form::kFloats);
  EXPECT_EQ(computed[0].reason, "its filters are not constant");
  EXPECT_TRUE(computed[0].of_two);
}

// A scale along the sum is no factor of the product.
TEST(IntegerProducts, ScalesOfTermsStayFloats) {
  const std::string text =
      fmt::format("graph g(%x: u8[5,7]) {{\n%w = constant {{value = {}}}\n{}{}", constant_of("i8", "7,6", 42, 3),
                  dequantised("x", "u8", "5,7", -1, 1, true), dequantised("w", "i8", "7,6", 0, 7, false)) +
      R"(%y = dot(%xF, %wF) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f32[5,6]
    return "y" = %y
  })";
  for (const bool vnni : {true, false})
    EXPECT_EQ(count_of(integers(ir::parse(text), vnni), ir::Op::kDot, DType::kF32), 1);
}

std::string quantised(double scale, int zero, bool in_f64 = false) {
  constexpr const char* kInF64 = R"(    %qw = cast(%qs) {to = f64}
    %qW = broadcast(%qw) {shape = [5,7], dims = []}
    %qx = cast(%xF) {to = f64}
    %qd = div(%qx, %qW)
    %qr = cast(%qd) {to = f32})";
  return fmt::format(R"(
    %qs = constant {{value = f32[]{{{}}}}}
    %qS = broadcast(%qs) {{shape = [5,7], dims = []}} : f32[5,7]
{}
    %qo = round(%qr) : f32[5,7]
    %qz = constant {{value = f32[]{{{}}}}}
    %qZ = broadcast(%qz) {{shape = [5,7], dims = []}} : f32[5,7]
    %qa = add(%qo, %qZ) : f32[5,7]
    %ql = constant {{value = f32[]{{0}}}}
    %qL = broadcast(%ql) {{shape = [5,7], dims = []}} : f32[5,7]
    %qm = max(%qa, %qL) : f32[5,7]
    %qh = constant {{value = f32[]{{255}}}}
    %qH = broadcast(%qh) {{shape = [5,7], dims = []}} : f32[5,7]
    %qn = min(%qm, %qH) : f32[5,7]
    %y = cast(%qn) {{to = u8}} : u8[5,7]
    return "y" = %y
  }})",
                     scale, in_f64 ? kInF64 : "    %qr = div(%xF, %qS) : f32[5,7]", zero);
}

// Quantising again with the same parameters gives the same bytes; with others, it stays.
TEST(IntegerProducts, DropsEqualQuantisation) {
  const std::string begin = "graph g(%x: u8[5,7]) {\n" + dequantised("x", "u8", "5,7", -1, 1, true);
  const auto rounds = [](const ir::Graph& graph) {
    int count = 0;
    for (const ir::Node& node : graph.nodes()) count += node.op == ir::Op::kRound;
    return count;
  };
  for (const Target& target : {target_of(true), target_of(false), Target::cuda_h200(1)}) {
    for (const bool in_f64 : {false, true}) {
      EXPECT_EQ(rounds(integers(ir::parse(begin + quantised(0.013, 3, in_f64)), target)), 0);
      EXPECT_EQ(rounds(integers(ir::parse(begin + quantised(0.013, 4, in_f64)), target)), 1);
      const ir::Graph before = ir::parse(begin + quantised(0.014, 3, in_f64)), after = integers(before, target);
      EXPECT_EQ(rounds(after), 1);
      expect_same(before, after, 0);
    }
  }
}

}  // namespace
}  // namespace heddle::passes
