// Sums of tens of thousands of products, of random signs: rounding grows with the root of the terms that a register
// adds up, and a bound of a few roundings of the largest result shows it.
#include <fmt/format.h>

#include "testing.h"

namespace heddle {
namespace {

constexpr double kFewRoundings = 1.2e-6;

void check_long_sum(const std::string& text, const testing::RunOptions& options = {}) {
  testing::check_graph(testing::parse_with_random_weights(text, 7), kFewRoundings, options);
}

TEST(LongSums, ProductsInAnyLayout) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const std::string dims = fmt::format("lhs_contract = [{}], rhs_contract = [{}]", ta ? 0 : 1, tb ? 1 : 0);
      check_long_sum(fmt::format(R"(graph g(%a: f32[{}], %b: f32[{}], %c: f32[19]) {{
        %0 = dot(%a, %b) {{lhs_batch = [], rhs_batch = [], {}}} : f32[8,19]
        %1 = broadcast(%c) {{shape = [8,19], dims = [1]}} : f32[8,19]
        %2 = add(%0, %1) : f32[8,19]
        return "y" = %2
      }})",
                        ta ? "40001,8" : "8,40001", tb ? "19,40001" : "40001,19", dims),
            {.threads = ta ? 1 : 2});
    }
  }
}

TEST(LongSums, WeightsBatchesAndComputedOperands) {
  check_long_sum(R"(graph g(%a: f32[2,3,30000], %b: f32[2,30000,40]) {
    %0 = dot(%a, %b) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]} : f32[2,3,40]
    return "y" = %0
  })");
  check_long_sum(R"(graph g(%a: f16[5,30000]) {
    %w = constant {value = f32[30000,11]{1}}
    %0 = cast(%a) {to = f32} : f32[5,30000]
    %1 = dot(%0, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f32[5,11]
    return "y" = %1
  })");
}

TEST(LongSums, ConvolutionsWithLargeWindows) {
  check_long_sum(R"(graph g(%x: f32[1,72,75,8], %w: f32[5,8,70,70]) {
    %0 = conv(%x, %w) {strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32[1,3,6,5]
    return "y" = %0
  })");
  // Padding, and segments that are shorter and longer than what is summed at once.
  check_long_sum(R"(graph g(%x: f32[1,2,3,9000], %w: f32[4,9000,2,2]) {
    %0 = conv(%x, %w) {strides = [1,1], low = [1,0], high = [0,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32[1,2,3,4]
    return "y" = %0
  })");
}

TEST(LongSums, Windows) {
  check_long_sum(R"(graph g(%x: f32[1,180,186,5]) {
    %0 = window_reduce(%x) {kind = "sum", window = [1,180,179,1], strides = [1,1,1,1], low = [0,0,0,0], high = [0,0,0,0], dilations = [1,1,1,1]} : f32[1,1,8,5]
    return "y" = %0
  })");
  check_long_sum(R"(graph g(%x: f32[1,150,158,9], %w: f32[9,1,150,150]) {
    %0 = conv(%x, %w) {strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 9, layout = "nhwc"} : f32[1,1,9,9]
    return "y" = %0
  })");
}

}  // namespace
}  // namespace heddle
