#include "ir/text/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "heddle/error.h"
#include "ir/reference/scalar.h"

namespace heddle::ir {
namespace {

constexpr std::string_view kSample = R"(graph(%x: f32[2,4], %"a/b": i64[3]) {
  %0 = constant {value = f32[2]{1.5, -2}} @"w:Const" @"conv 1:Conv"
  %1 = constant {value = f16[2,2]{0.5}}
  %2 = constant {value = i8[3]{-128, 0, 127}}
  %3 = constant {value = bool[2]{1, 0}}
  %4 = constant {value = u64[2]{18446744073709551615, 1}}
  %5 = constant {value = f32[4]{inf, -inf, nan, -0}}
  %6 = constant {value = f32[0,3]{}}
  %7 = iota {dim = 0, dtype = i32, shape = [4]} : i32[4]
  %8 = transpose(%x) {perm = [1,0]} : f32[4,2] @"t\"1\n:Transpose"
  %9, %10 = topk(%8) {dim = 0, k = 2, largest = 1, sorted = 1} : f32[2,2], i64[2,2]
  %11 = constant {value = bool[]{1}}
  %12 = if(%11, %9) {else = graph(%a: f32[2,2]) {
    %0 = neg(%a) : f32[2,2]
    return "y" = %0
  }, then = graph(%a: f32[2,2]) {
    return "y" = %a
  }} : f32[2,2]
  return "values" = %12, "in dices" = %10
}
)";

TEST(Text, PrintsWhatItReads) {
  EXPECT_EQ(print(parse(kSample)), kSample);
}

TEST(Text, AcceptsFreeNamesCommentsAndMissingTypes) {
  const Graph graph =
      parse("// a comment\ngraph named(%in: f32[2]) { %sum=add(%in,%in) // here\n return \"y\" = %sum }");
  EXPECT_EQ(print(graph), "graph(%in: f32[2]) {\n  %0 = add(%in, %in) : f32[2]\n  return \"y\" = %0\n}\n");
}

TEST(Text, LargeConstantsPrintAsHashAndAreRefusedWhenRead) {
  Graph graph;
  Tensor values(DType::kF32, {100});
  for (int64_t i = 0; i < 100; ++i) set_real(values, i, static_cast<double>(i));
  graph.output("y", graph.constant(values));
  const std::string text = print(graph);
  EXPECT_NE(text.find("dense<hash: "), std::string::npos);
  EXPECT_THROW(parse(text), Error);
  EXPECT_EQ(print(parse(print(graph, {.max_constant_elements = -1})), {.max_constant_elements = -1}),
            print(graph, {.max_constant_elements = -1}));
}

struct Bad {
  std::string_view text, where, why;
};

class BadText : public ::testing::TestWithParam<Bad> {};

TEST_P(BadText, IsRefusedAtItsPosition) {
  try {
    parse(GetParam().text);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidIr);
    EXPECT_THAT(error.where(), ::testing::HasSubstr(std::string(GetParam().where)));
    EXPECT_THAT(error.why(), ::testing::HasSubstr(std::string(GetParam().why)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadText,
    ::testing::Values(
        Bad{"", "line 1, column 1", "expected 'graph', found the end of the text"},
        Bad{"graph(%x: f33[2]) { return }", "line 1, column 11", "no element type named f33"},
        Bad{"graph(%x: f32[-1]) { return }", "line 1, column 14", "-1"},
        Bad{"graph(%x: f32[9999999999,9999999999]) { return }", "line 1", ""},
        Bad{"graph(%x: f32[99999999999999999999]) { return }", "column 15", "is not an integer"},
        Bad{"graph(%x: f32[2], %x: f32[2]) { return }", "column 19", "this name"},
        Bad{"graph(%x: f32[2]) {\n  %y = ad(%x)\n return }", "line 2, column 8", "no primitive named ad"},
        Bad{"graph(%x: f32[2]) {\n  %y = add(%x, %z)\n return }", "line 2, column 16", "%z is not defined above"},
        Bad{"graph(%x: f32[2]) { %x = neg(%x) return }", "column 21", "%x is defined twice"},
        Bad{"graph(%x: f32[2]) { %y = add(%x) return }", "column 26", "operands given"},
        Bad{"graph(%x: f32[2]) { %y = neg(%x) : f32[3] return }", "column 26", "the type of %y is f32[2], not f32[3]"},
        Bad{"graph(%x: f32[2]) { %y = transpose(%x) return }", "column 26", "perm is missing"},
        Bad{"graph(%x: f32[2]) { %y, %z = neg(%x) return }", "column 30", "neg has 1 results, 2 are named"},
        Bad{"graph() { %a = constant {value = f32[3]{1, 2}} return }", "column 34",
            "2 values are given for the 3 elements"},
        Bad{"graph() { %a = constant {value = i8[1]{200}} return }", "column 40", "200 does not fit i8"},
        Bad{"graph() { %a = constant {value = f32[1099511627776]{0}} return }", "column 34", "limited"},
        Bad{"graph() { %a = constant {value = f32[1]{1..2}} return }", "column 41", "is not a number"},
        Bad{"graph() { return \"y }", "column 18", "no closing quote"},
        Bad{"graph() { return \"\\q\" }", "column 18", "escapes"},
        Bad{"graph() { return } x", "column 20", "expected the end of the text"},
        Bad{"graph() { %p = parameter {name = \"x\"} return }", "column 16", "head of the graph"},
        Bad{"graph() { # }", "column 11", "no meaning"}));

TEST(Text, DeepNestingIsRefusedNotRecursedInto) {
  std::string text = "graph() { %a = if() {then = ";
  for (int i = 0; i < 100000; ++i) text += "graph() { %a = if() {then = ";
  EXPECT_THROW(parse(text), Error);
}

TEST(Text, MutatedTextNeverCrashes) {
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string text(kSample);
    for (uint32_t n = random() % 6 + 1; n > 0; --n) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, random() % 9);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 12));
          break;
        default:
          text[at] = "0123456789-[]{}()%\",=.e"[random() % 23];
      }
      if (text.empty()) text = "g";
    }
    try {
      const Graph graph = parse(text);
      EXPECT_EQ(print(parse(print(graph))), print(graph));
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << text << error.what();
    }
  }
}

}  // namespace
}  // namespace heddle::ir
