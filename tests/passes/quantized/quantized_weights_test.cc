#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <ranges>

#include "ir/builder.h"
#include "tests/passes/pass_test_util.h"

namespace heddle::passes {
namespace {

const ir::Node* packed_node(const ir::Graph& graph) {
  const auto found = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                                  [](const ir::Node& node) { return node.op == ir::Op::kDequantize; });
  return found == graph.nodes().end() ? nullptr : &*found;
}

// The pass leaves the values as they are; the packed weights that it makes, or null.
const ir::Node* packed_by_pass(const std::string& text, ir::Graph& after) {
  const ir::Graph before = ir::parse(text);
  const std::vector<std::string> names = {"quantized_weights"};
  after = run_passes(before, names, {test_target(), Precision::kF32});
  expect_same(before, after);
  return packed_node(after);
}

std::string spread_list(int count, int factor, int modulus) {
  std::vector<int> values;
  for (int i = 0; i < count; ++i) values.push_back(i * factor % modulus);
  return fmt::format("{}", fmt::join(values, ","));
}

// Weights [3, 20] in blocks, read as columns, made by `integers` (u8[3,20], "q"), with one zero point a block.
std::string blocked_weights(const std::string& integers, int block = 8) {
  const int blocks = (20 + block - 1) / block;
  return fmt::format(R"(graph(%a: f32[2,20]) {{
    {0}
    %s = constant {{value = f32[3,{1}]{{{3}}}}}
    %z = constant {{value = u8[3,{1}]{{{4}}}}}
    %s1 = broadcast(%s) {{shape = [3,{1},{2}], dims = [0,1]}}
    %s2 = reshape(%s1) {{shape = [3,{5}]}}
    %s3 = slice(%s2) {{starts = [0,0], limits = [3,20], strides = [1,1]}}
    %z0 = cast(%z) {{to = f32}}
    %z1 = broadcast(%z0) {{shape = [3,{1},{2}], dims = [0,1]}}
    %z2 = reshape(%z1) {{shape = [3,{5}]}}
    %z3 = slice(%z2) {{starts = [0,0], limits = [3,20], strides = [1,1]}}
    %f = cast(%q) {{to = f32}}
    %c = sub(%f, %z3)
    %w = mul(%c, %s3)
    %t = transpose(%w) {{perm = [1,0]}}
    %y = dot(%a, %t) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}
    return "y" = %y
  }})",
                     integers, blocks, block, fmt::join(std::views::iota(1, 3 * blocks + 1), ","),
                     fmt::join(std::views::iota(0, 3 * blocks), ","), blocks * block);
}

TEST(QuantizedWeights, IntegersOfAnyOriginArePacked) {
  ir::Graph after;
  const ir::Node* node = packed_by_pass(
      blocked_weights(fmt::format("%q = constant {{value = u8[3,20]{{{}}}}}", spread_list(60, 7, 16))), after);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->attrs.integer("bits"), 4);
  EXPECT_EQ(node->attrs.integer("block"), 8);
  EXPECT_EQ(node->inputs.size(), 3u);
  // Two to a byte.
  node = packed_by_pass(blocked_weights(fmt::format(R"(%b = constant {{value = u8[3,10]{{{}}}}}
    %four = constant {{value = u8[3,10]{{{}}}}}
    %mask = constant {{value = u8[3,10]{{{}}}}}
    %low = and(%b, %mask)
    %high = shr(%b, %four)
    %l1 = reshape(%low) {{shape = [3,10,1]}}
    %h1 = reshape(%high) {{shape = [3,10,1]}}
    %both = concat(%l1, %h1) {{dim = 2}}
    %q = reshape(%both) {{shape = [3,20]}})",
                                                    spread_list(30, 41, 256), fmt::join(std::vector<int>(30, 4), ","),
                                                    fmt::join(std::vector<int>(30, 15), ","))),
                        after);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->attrs.integer("bits"), 4);
  node = packed_by_pass(
      blocked_weights(fmt::format("%q = constant {{value = u8[3,20]{{{}}}}}", spread_list(60, 7, 256))), after);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->attrs.integer("bits"), 8);
}

// Weights [16, 5] with blocks along the rows, as DequantizeLinear has them; a scale for each of `blocks` blocks.
std::string rows_of_blocks(int blocks, const std::string& type = "i8") {
  return fmt::format(R"(graph(%a: f32[2,16]) {{
    %q = constant {{value = {}[16,5]{{{}}}}}
    %s = constant {{value = f32[{},5]{{{}}}}}
    %s1 = broadcast(%s) {{shape = [{},{},5], dims = [0,2]}}
    %s2 = reshape(%s1) {{shape = [16,5]}}
    %f = cast(%q) {{to = f32}}
    %w = mul(%s2, %f)
    %y = dot(%a, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}
    return "y" = %y
  }})",
                     type, spread_list(80, 7, 8), blocks, spread_list(5 * blocks, 3, 7), blocks, 16 / blocks);
}

// Numbers in bytes, `bits` each, in the order of `shifts`.
std::string fields_of_bytes(int bits, const std::vector<int>& shifts) {
  const auto pitch = static_cast<int>(20 / shifts.size());
  std::string text = fmt::format("%b = constant {{value = u8[3,{}]{{{}}}}}\n", pitch, spread_list(3 * pitch, 41, 256)),
              parts;
  const auto full = [&](const std::string& name, int value) {
    text += fmt::format(
        "%{0}0 = constant {{value = u8[]{{{1}}}}}\n%{0} = broadcast(%{0}0) {{shape = [3,{2}], dims = []}}\n", name,
        value, pitch);
  };
  full("mask", (1 << bits) - 1);
  for (const int shift : shifts) {
    full(fmt::format("shift{}", shift), shift);
    text += fmt::format(
        "%m{0} = shr(%b, %shift{0})\n%n{0} = and(%m{0}, %mask)\n%o{0} = reshape(%n{0}) {{shape = [3,{1},1]}}\n", shift,
        pitch);
    parts += fmt::format("{}%o{}", parts.empty() ? "" : ", ", shift);
  }
  return text + fmt::format("%both = concat({}) {{dim = 2}}\n%q = reshape(%both) {{shape = [3,20]}}", parts);
}

TEST(QuantizedWeights, FieldsOfBytesKeepTheirOrder) {
  for (const auto& [bits, shifts] :
       {std::pair<int, std::vector<int>>{4, {0, 4}}, {4, {4, 0}}, {2, {0, 2, 4, 6}}, {2, {6, 0, 2, 4}}}) {
    ir::Graph after;
    const ir::Node* node = packed_by_pass(blocked_weights(fields_of_bytes(bits, shifts), 16), after);
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(node->attrs.integer("bits"), bits);
  }
}

TEST(QuantizedWeights, BlocksMayRunAlongEitherDimension) {
  ir::Graph after;
  const ir::Node* node = packed_by_pass(rows_of_blocks(2), after);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(after.shape(node->outputs[0]), (Shape{5, 16}));
  EXPECT_EQ(node->attrs.integer("block"), 8);
  EXPECT_EQ(node->attrs.integer("zero"), 0);
  node = packed_by_pass(rows_of_blocks(1), after);  // a scale for each column
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->attrs.integer("block"), 16);
}

// The gates of a recurrence read parts of weights that were dequantised as a whole.
TEST(QuantizedWeights, PartsOfWeightsArePackedAlone) {
  ir::Graph after;
  const ir::Node* node = packed_by_pass(fmt::format(R"(graph(%a: f32[2,5]) {{
    %q = constant {{value = i8[2,12,5]{{{}}}}}
    %s = constant {{value = f32[12]{{{}}}}}
    %s1 = broadcast(%s) {{shape = [2,12,5], dims = [1]}}
    %f = cast(%q) {{to = f32}}
    %w = mul(%f, %s1)
    %d = slice(%w) {{starts = [1,0,0], limits = [2,12,5], strides = [1,1,1]}}
    %r = reshape(%d) {{shape = [12,5]}}
    %g = slice(%r) {{starts = [4,0], limits = [8,5], strides = [1,1]}}
    %t = transpose(%g) {{perm = [1,0]}}
    %y = dot(%a, %t) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}
    return "y" = %y
  }})",
                                                    spread_list(120, 7, 100), spread_list(12, 3, 7)),
                                        after);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(after.shape(node->outputs[0]), (Shape{4, 5}));
  EXPECT_EQ(node->attrs.integer("bits"), 8);
}

TEST(QuantizedWeights, OtherFormsStayAsTheyAre) {
  ir::Graph after;
  EXPECT_EQ(packed_by_pass(rows_of_blocks(16), after), nullptr);  // a scale for each element
  EXPECT_EQ(packed_by_pass(rows_of_blocks(2, "i32"), after), nullptr);
  EXPECT_EQ(packed_by_pass(R"(graph(%a: f32[2,3], %q: i8[3,4], %s: f32[]) {
    %f = cast(%q) {to = f32}
    %s1 = broadcast(%s) {shape = [3,4], dims = []}
    %w = mul(%f, %s1)
    %y = dot(%a, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
    return "y" = %y
  })",
                           after),
            nullptr);
  // Repeated weights would take more memory packed than they do before they are repeated.
  EXPECT_EQ(packed_by_pass(R"(graph(%a: f32[2,3]) {
    %q = constant {value = i8[1,4]{1, -2, 3, 4}}
    %s = constant {value = f32[1,4]{0.5, 0.25, 2, 4}}
    %f = cast(%q) {to = f32}
    %w = mul(%f, %s)
    %b = broadcast(%w) {shape = [3,4], dims = [0,1]}
    %y = dot(%a, %b) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
    return "y" = %y
  })",
                           after),
            nullptr);
}

TEST(QuantizedWeights, FourOfSixteenEntriesOfATable) {
  ir::Graph after;
  const ir::Node* node = packed_by_pass(fmt::format(R"(graph(%a: f32[2,16]) {{
    %q = constant {{value = u8[3,16]{{{}}}}}
    %t = constant {{value = f32[16]{{{}}}}}
    %s = constant {{value = f32[3]{{1,2,3}}}}
    %v = gather(%t, %q) {{dim = 0}}
    %s1 = broadcast(%s) {{shape = [3,16], dims = [0]}}
    %w = mul(%v, %s1)
    %y = dot(%a, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}}
    return "y" = %y
  }})",
                                                    spread_list(48, 5, 16), spread_list(16, 11, 17)),
                                        after);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(after.shape(node->inputs[2]), (Shape{16}));
}

// A file may compute a constant in as many steps as it likes, and each step may read the one before twice.
TEST(QuantizedWeights, ConstantsOfManySteps) {
  std::string steps;
  for (int i = 0; i < 20000; ++i) steps += fmt::format("%q{} = max(%q{}, %q{})\n", i + 1, i, i);
  const std::string text = fmt::format(R"(graph(%a: f32[2,8]) {{
    %q0 = constant {{value = u8[3,8]{{{}}}}}
    {}
    %f = cast(%q20000) {{to = f32}}
    %c = constant {{value = f32[3]{{1,2,3}}}}
    %s = broadcast(%c) {{shape = [3,8], dims = [0]}}
    %w = mul(%f, %s)
    %t = transpose(%w) {{perm = [1,0]}}
    %y = dot(%a, %t) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}
    return "y" = %y
  }})",
                                       spread_list(24, 5, 16), steps);
  const auto after = [&](const std::vector<std::string>& names) {
    return run_passes(ir::parse(text), names, {test_target(), Precision::kF32});
  };
  EXPECT_NE(packed_node(after({"quantized_weights"})), nullptr);
  EXPECT_EQ(packed_node(after({"integer_products"})), nullptr);
}

// x [3,k] times packed weights of n columns, each row of which has blocks of 16.
ir::ValueId packed_product(ir::Builder& b, ir::ValueId x, int64_t n, int64_t zero, std::mt19937& random) {
  const int64_t k = b.shape(x)[1];
  Tensor words(DType::kU32, {n, k / 8}), scales(DType::kF32, {n, k / 16}), zeros(DType::kU8, {n, k / 16});
  for (uint32_t& word : words.mutable_values<uint32_t>()) word = static_cast<uint32_t>(random());
  for (float& scale : scales.mutable_values<float>()) scale = static_cast<float>(random() % 100) / 1000;
  for (uint8_t& z : zeros.mutable_values<uint8_t>()) z = static_cast<uint8_t>(random() % 16);
  std::vector<ir::ValueId> operands = {b.constant(std::move(words)), b.constant(std::move(scales))};
  if (zero < 0) operands.push_back(b.constant(std::move(zeros)));
  const ir::ValueId weights = b.emit(ir::Op::kDequantize, operands,
                                     {{"bits", int64_t{4}},
                                      {"block", int64_t{16}},
                                      {"k", k},
                                      {"zero", std::max<int64_t>(zero, 0)},
                                      {"dtype", DType::kF32}});
  return b.emit(ir::Op::kDot, {x, weights},
                {{"lhs_batch", ir::Ints{}},
                 {"rhs_batch", ir::Ints{}},
                 {"lhs_contract", ir::Ints{1}},
                 {"rhs_contract", ir::Ints{1}}});
}

size_t dots_after(const ir::Graph& before, const char* pass) {
  const std::vector<std::string> names = {pass};
  const ir::Graph after = run_passes(before, names, {Target::cuda_h200(1)});
  expect_same(before, after);
  return static_cast<size_t>(std::count_if(after.nodes().begin(), after.nodes().end(),
                                           [](const ir::Node& node) { return node.op == ir::Op::kDot; }));
}

TEST(QuantizedWeights, OfProductsOfOneValueAreMergedOnAGpu) {
  std::mt19937 random(5);
  for (const int64_t zero : {int64_t{8}, int64_t{-1}}) {
    ir::Graph graph;
    ir::Builder b(graph);
    const ir::ValueId x = graph.parameter("x", {DType::kF32, {3, 48}});
    const ir::ValueId q = packed_product(b, x, 24, zero, random), k = packed_product(b, x, 8, zero, random);
    const ir::ValueId other = packed_product(b, x, 16, 3, random);
    graph.output("q", b.reshape(q, {3, 3, 8}));
    graph.output("k", b.reshape(k, {3, 1, 8}));
    graph.output("other", b.reshape(other, {3, 2, 8}));
    EXPECT_EQ(dots_after(graph, "merge_dots"), 2u);  // another zero point is another form
  }
}

TEST(QuantizedWeights, OfGatedProductsAreInterleavedOnAGpu) {
  std::mt19937 random(6);
  ir::Graph graph;
  ir::Builder b(graph);
  const ir::ValueId x = graph.parameter("x", {DType::kF32, {3, 32}});
  const ir::ValueId gate = packed_product(b, x, 40, 8, random), up = packed_product(b, x, 40, 8, random);
  graph.output("y", b.mul(b.unary(ir::Op::kTanh, gate), up));
  EXPECT_EQ(dots_after(graph, "gate_dots"), 1u);
}

}  // namespace
}  // namespace heddle::passes
