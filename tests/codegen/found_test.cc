// Graphs that were found to compile wrongly or to run slowly, made small.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>

#include "harness.h"
#include "ir/text/text.h"

namespace heddle::testing {
namespace {

TEST(Found, IntegersWrap) {
  constexpr int64_t kAny = int64_t{1} << 31;
  Batch batch;
  batch.add_text("comparison with the double", R"(graph(%x: i32[26,1]) {
    %0 = add(%x, %x) : i32[26,1]
    %1 = le(%0, %x) : bool[26,1]
    return "y" = %1
  })",
                 0, kAny);
  batch.add_text("comparison with the next number", R"(graph(%x: i32[37]) {
    %0 = constant {value = i32[]{2147483647}}
    %1 = broadcast(%0) {dims = [], shape = [37]} : i32[37]
    %2 = add(%x, %1) : i32[37]
    %3 = gt(%2, %x) : bool[37]
    return "y" = %3
  })",
                 0, kAny);
  batch.run();
}

TEST(Found, ShiftsOfNarrowIntegersByTheirWidth) {
  Batch batch;
  for (const char* type : {"i4", "u4", "i2", "u2"}) {
    for (const char* op : {"shl", "shr"}) {
      const std::string t = std::string(type) + "[67]";
      batch.add_text(std::string(op) + " " + t,
                     "graph(%x: " + t + ", %n: " + t + ") { %0 = " + op + "(%x, %n) : " + t + " return \"y\" = %0 }", 0,
                     type[1] == '4' ? 8 : 2);
    }
  }
  batch.run();
}

TEST(Found, SignKeepsTheSignOfZero) {
  Batch batch;
  batch.add_text("which side of the cut", R"(graph(%x: f32[19], %y: f32[19]) {
    %0 = constant {value = f32[]{0}}
    %1 = broadcast(%0) {dims = [], shape = [19]} : f32[19]
    %2 = mul(%x, %1) : f32[19]
    %3 = sign(%2) : f32[19]
    %4 = atan2(%3, %y) : f32[19]
    return "y" = %4
  })");
  batch.run();
}

TEST(Found, ScanOfAReductionOfAReduction) {
  Batch batch;
  for (const char* reverse : {"0", "1"}) {
    const std::string scan = std::string("scan(%8) {dim = 2, exclusive = 0, kind = \"min\", reverse = ") + reverse;
    batch.add_text("reverse " + std::string(reverse), R"(graph(%x: f32[3,1,5]) {
      %0 = reduce(%x) {dims = [2], kind = "sum"} : f32[3,1]
      %1 = reshape(%0) {shape = [3,1,1]} : f32[3,1,1]
      %2 = broadcast(%1) {dims = [0,1,2], shape = [3,1,5]} : f32[3,1,5]
      %3 = sub(%x, %2) : f32[3,1,5]
      %4 = mul(%3, %3) : f32[3,1,5]
      %5 = reduce(%4) {dims = [2], kind = "sum"} : f32[3,1]
      %6 = reshape(%5) {shape = [3,1,1]} : f32[3,1,1]
      %7 = broadcast(%6) {dims = [0,1,2], shape = [3,1,5]} : f32[3,1,5]
      %8 = mul(%3, %7) : f32[3,1,5]
      %9 = )" + scan + R"(} : f32[3,1,5]
      return "y" = %9
    })");
  }
  batch.run();
}

TEST(Found, ColumnsThatAreKeptInAnotherOrderThanTheyAreReduced) {
  Batch batch;
  batch.add_text("columns", R"(graph(%x: f32[3,2,6]) {
    %0 = transpose(%x) {perm = [1,2,0]} : f32[2,6,3]
    %1 = reduce(%0) {dims = [1,2], kind = "min"} : f32[2]
    %2 = reduce(%0) {dims = [0], kind = "max"} : f32[6,3]
    %3 = reduce(%2) {dims = [1], kind = "max"} : f32[6]
    %4 = slice(%3) {starts = [0], limits = [2], strides = [1]} : f32[2]
    %5 = broadcast(%4) {dims = [1], shape = [2,2]} : f32[2,2]
    %6 = broadcast(%1) {dims = [0], shape = [2,2]} : f32[2,2]
    %7 = mul(%5, %6) : f32[2,2]
    return "y" = %7
  })");
  batch.run();
}

TEST(Found, NarrowSumsThatOverflowAreReadWithoutTheirCarry) {
  Batch batch;
  for (const char* t : {"i4", "u4", "i2", "u2"}) {
    for (const char* kind : {"sum", "prod"}) {
      for (const auto& [dim, kept, left] : {std::tuple{"0", "1,2", "5,7"}, {"2", "0,1", "3,5"}}) {
        batch.add_text(fmt::format("{} of {} over {}", kind, t, dim), fmt::format(R"(graph(%x: {0}[3,5,7]) {{
          %0 = reduce(%x) {{dims = [{2}], kind = "{1}"}} : {0}[{4}]
          %1 = broadcast(%0) {{dims = [{3}], shape = [3,5,7]}} : {0}[3,5,7]
          %2 = gt(%x, %1) : bool[3,5,7]
          return "y" = %2, "z" = %0
        }})",
                                                                                  t, kind, dim, kept, left));
      }
    }
  }
  batch.run();
}

TEST(Found, NarrowScansStayWithinTheirBits) {
  Batch batch;
  for (const char* t : {"i4", "u4", "i2", "u2"}) {
    for (const auto& [kind, exclusive] : {std::tuple{"sum", 0}, {"prod", 0}, {"sum", 1}, {"max", 1}, {"min", 1}}) {
      for (int dim = 0; dim < 2; ++dim) {
        batch.add_text(fmt::format("{} of {} along {}, exclusive {}", kind, t, dim, exclusive),
                       fmt::format(R"(graph(%x: {0}[5,71]) {{
          %0 = scan(%x) {{dim = {2}, exclusive = {3}, kind = "{1}", reverse = {2}}} : {0}[5,71]
          %1 = gt(%x, %0) : bool[5,71]
          return "y" = %1, "z" = %0
        }})",
                                   t, kind, dim, exclusive),
                       0, t[1] == '4' ? 8 : 2);
      }
    }
    batch.add_text(fmt::format("one {}", t), fmt::format(R"(graph(%x: {0}[1,1]) {{
      %0 = scan(%x) {{dim = 0, exclusive = 0, kind = "max", reverse = 0}} : {0}[1,1]
      return "y" = %0
    }})",
                                                         t));
  }
  batch.run();
}

// A scan's dimension that was two in memory, of which the first lay side by side: most bytes are read along that one.
TEST(Found, ScansKeepTheirOrderWhateverLiesSideBySide) {
  Batch batch;
  for (const int reverse : {0, 1}) {
    for (const char* t : {"i8", "i2"}) {
      batch.add_text(fmt::format("{} reverse {}", t, reverse), fmt::format(R"(graph(%x: i32[2,515]) {{
        %0 = transpose(%x) {{perm = [1,0]}} : i32[515,2]
        %1 = cast(%0) {{to = {0}}} : {0}[515,2]
        %2 = reshape(%1) {{shape = [1030]}} : {0}[1030]
        %3 = scan(%2) {{dim = 0, exclusive = {1}, kind = "sum", reverse = {1}}} : {0}[1030]
        return "y" = %3
      }})",
                                                                           t, reverse));
    }
    batch.add_text(fmt::format("of lines, reverse {}", reverse), fmt::format(R"(graph(%x: i64[3,7,67]) {{
      %0 = transpose(%x) {{perm = [0,2,1]}} : i64[3,67,7]
      %1 = cast(%0) {{to = i16}} : i16[3,67,7]
      %2 = reshape(%1) {{shape = [3,469]}} : i16[3,469]
      %3 = scan(%2) {{dim = 1, exclusive = 0, kind = "sum", reverse = {}}} : i16[3,469]
      return "y" = %3
    }})",
                                                                             reverse));
  }
  batch.run();
}

// Columns of a small team that are reduced one after the other, through the same memory.
TEST(Found, ColumnsAfterColumns) {
  Batch batch;
  for (const auto& [m, n] : {std::tuple{2, 2}, {3, 2}, {5, 4}}) {
    batch.add_text(fmt::format("{}x{}", m, n),
                   fmt::format(R"(graph(%x0: f32[49,{0}], %x1: i32[{0},{1}]) {{
      %0 = gather(%x0, %x1) {{dim = 0}} : f32[{0},{1},{0}]
      %1 = reduce(%0) {{dims = [2], kind = "min"}} : f32[{0},{1}]
      %2 = slice(%1) {{limits = [1,{1}], starts = [0,0], strides = [1,1]}} : f32[1,{1}]
      %3 = broadcast(%2) {{dims = [0,1], shape = [{0},{1}]}} : f32[{0},{1}]
      %4 = mul(%3, %1) : f32[{0},{1}]
      %5 = reduce(%4) {{dims = [1], kind = "sum"}} : f32[{0}]
      %6 = broadcast(%5) {{dims = [0], shape = [{0},{1}]}} : f32[{0},{1}]
      return "y" = %6
    }})",
                               m, n),
                   1e-5, 49);
  }
  batch.run();
}

// What a thread's columns reduce to on the way to an output did not fit a block's shared memory.
TEST(Found, ManyResultsOfFewColumns) {
  Batch batch;
  for (const int rows : {257, 4000}) {
    batch.add_text(fmt::format("{} results a column", rows), fmt::format(R"(graph(%x: f32[2,{0},2], %y: f32[8,2]) {{
      %0 = reduce(%x) {{dims = [0], kind = "sum"}} : f32[{0},2]
      %1 = broadcast(%0) {{dims = [1,2], shape = [2,{0},2]}} : f32[2,{0},2]
      %2 = sub(%x, %1) : f32[2,{0},2]
      %3 = reduce(%y) {{dims = [0], kind = "sum"}} : f32[2]
      %4 = broadcast(%3) {{dims = [2], shape = [2,{0},2]}} : f32[2,{0},2]
      %5 = mul(%2, %4) : f32[2,{0},2]
      return "z" = %5
    }})",
                                                                         rows));
  }
  batch.run();
}

// What is marked as rounded is no part of a fused multiply-add; other products may be.
TEST(Found, RoundedProductsAreWrittenApart) {
  const auto text_of = [](const char* attributes) {
    const ir::Graph graph = ir::parse(fmt::format(R"(graph(%x: f32[64], %y: f32[64], %z: f32[64]) {{
      %0 = mul(%x, %y) {}
      %1 = add(%0, %z)
      %2 = round(%1)
      return "y" = %2
    }})",
                                                  attributes));
    const Target target = test_target();
    const auto group = schedule::schedule(graph, whole_graph(graph), target, nullptr, {});
    return codegen::emit(schedule::plan_kernel(group.kernels.at(0), target), target).text;
  };
  EXPECT_NE(text_of("{rounded = 1}").find("tile::mul_rounded("), std::string::npos) << text_of("{rounded = 1}");
  EXPECT_EQ(text_of("").find("mul_rounded"), std::string::npos);
}

// A sum in more parts than any of its dimensions has steps.
TEST(Found, SumsOverSeveralDimensionsInParts) {
  Batch batch;
  batch.add("images and pixels", [](ir::Builder& b) {
    const auto x = b.graph().parameter("x", {DType::kF16, {41, 29, 27, 32}});
    b.graph().output("s", b.reduce("sum", x, {0, 1, 2}, false));
    b.graph().output("q", b.reduce("sum", b.mul(x, x), {0, 1, 2}, false));
  });
  batch.run();
}

}  // namespace
}  // namespace heddle::testing
