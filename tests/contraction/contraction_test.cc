#include <fmt/format.h>

#include <array>
#include <cstring>

#include "ir/rewrite.h"
#include "phase_graphs.h"
#include "testing.h"
#include "tests/instances.h"

namespace heddle {
namespace {

using testing::check_graph;
using testing::parse_with_random_weights;

void check(const std::string& text, double tolerance = 1e-5, const testing::RunOptions& options = {}) {
  check_graph(parse_with_random_weights(text, 5), tolerance, options);
}

TEST(Dot, MatrixTimesWeightsWithBiasAndActivation) {
  for (int threads : {1, 2}) {
    check(R"(graph g(%x: f32[29,67]) {
      %w = constant {value = f32[67,45]{1}}
      %b = constant {value = f32[45]{1}}
      %z = constant {value = f32[]{0}}
      %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f32[29,45]
      %1 = broadcast(%b) {shape = [29,45], dims = [1]} : f32[29,45]
      %2 = add(%0, %1) : f32[29,45]
      %3 = broadcast(%z) {shape = [29,45], dims = []} : f32[29,45]
      %4 = max(%2, %3) : f32[29,45]
      return "y" = %4
    })",
          1e-5, {.threads = threads});
  }
}

TEST(Dot, EveryInstructionSet) {
  for (CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2}) {
    check(R"(graph g(%x: f32[29,67], %r: f32[29,45]) {
      %w = constant {value = f32[45,67]{1}}
      %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]} : f32[29,45]
      %1 = tanh(%0) : f32[29,45]
      %2 = add(%1, %r) : f32[29,45]
      return "y" = %2, "z" = %0
    })",
          1e-5, {.isa = isa});
  }
}

TEST(Dot, AttentionReadsHeadsThroughStrides) {
  // Projections [B,S,H*D] seen as [B,H,S,D] by reshape and transpose: both operands are strided views.
  check(R"(graph g(%q: f32[2,11,96], %k: f32[2,13,96], %m: f32[2,13]) {
    %s = constant {value = f32[]{0.125}}
    %0 = reshape(%q) {shape = [2,11,3,32]} : f32[2,11,3,32]
    %1 = transpose(%0) {perm = [0,2,1,3]} : f32[2,3,11,32]
    %2 = reshape(%k) {shape = [2,13,3,32]} : f32[2,13,3,32]
    %3 = transpose(%2) {perm = [0,2,3,1]} : f32[2,3,32,13]
    %4 = dot(%1, %3) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]} : f32[2,3,11,13]
    %5 = broadcast(%s) {shape = [2,3,11,13], dims = []} : f32[2,3,11,13]
    %6 = mul(%4, %5) : f32[2,3,11,13]
    %7 = broadcast(%m) {shape = [2,3,11,13], dims = [0,3]} : f32[2,3,11,13]
    %8 = add(%6, %7) : f32[2,3,11,13]
    return "y" = %8
  })");
}

TEST(Dot, EpilogueMayPermuteTheResult) {
  // The context of an attention goes back to [B,S,H*D]; the other way round, a projection is split into heads.
  check(R"(graph g(%p: f32[2,3,11,13], %v: f32[2,3,13,32]) {
    %0 = dot(%p, %v) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]} : f32[2,3,11,32]
    %1 = transpose(%0) {perm = [0,2,1,3]} : f32[2,11,3,32]
    %2 = reshape(%1) {shape = [22,96]} : f32[22,96]
    return "y" = %2
  })");
  check(R"(graph g(%x: f32[2,11,20]) {
    %w = constant {value = f32[20,96]{1}}
    %b = constant {value = f32[96]{1}}
    %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]} : f32[2,11,96]
    %1 = broadcast(%b) {shape = [2,11,96], dims = [2]} : f32[2,11,96]
    %2 = add(%0, %1) : f32[2,11,96]
    %3 = reshape(%2) {shape = [2,11,3,32]} : f32[2,11,3,32]
    %4 = transpose(%3) {perm = [0,2,1,3]} : f32[2,3,11,32]
    %5 = transpose(%3) {perm = [0,2,3,1]} : f32[2,3,32,11]
    return "y" = %4, "z" = %5
  })");
  // Heads of 5 columns: no vector lies in one head.
  check(R"(graph g(%x: f32[7,20]) {
    %w = constant {value = f32[20,35]{1}}
    %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f32[7,35]
    %1 = reshape(%0) {shape = [7,7,5]} : f32[7,7,5]
    %2 = transpose(%1) {perm = [1,0,2]} : f32[7,7,5]
    return "y" = %2
  })");
}

TEST(Dot, AwkwardDimensions) {
  // Vectors, scalars, empty sums.
  check(R"(graph g(%x: f32[67], %y: f32[67]) {
    %0 = dot(%x, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [0]} : f32[]
    return "y" = %0
  })");
  check(R"(graph g(%x: f32[67], %y: f32[45]) {
    %0 = dot(%x, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [], rhs_contract = []} : f32[67,45]
    return "y" = %0
  })");
  check(R"(graph g(%x: f32[5,0], %y: f32[0,4]) {
    %0 = dot(%x, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f32[5,4]
    return "y" = %0
  })");
  check(R"(graph g(%x: f32[0,3], %y: f32[3,4]) {
    %0 = dot(%x, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f32[0,4]
    return "y" = %0
  })");
  // Weights on the left, few columns: the transposed product.
  check(R"(graph g(%x: f32[3,2,19]) {
    %w = constant {value = f32[40,19]{1}}
    %0 = dot(%w, %x) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [2]} : f32[40,3,2]
    %1 = exp(%0) : f32[40,3,2]
    return "y" = %1
  })");
  // Contracting dimensions that are one in memory, named inner first; rows that are not one stride apart.
  check(R"(graph g(%x: f32[2,4,5,3], %y: f32[4,5,9]) {
    %0 = dot(%x, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [2,1], rhs_contract = [1,0]} : f32[2,3,9]
    return "y" = %0
  })");
  // Two contracting dimensions that are not one in memory, free dimensions around them.
  check(R"(graph g(%x: f32[3,5,7,4], %y: f32[4,6,5,9]) {
    %0 = dot(%x, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [1,3], rhs_contract = [2,0]} : f32[3,7,6,9]
    return "y" = %0
  })");
  // A batch dimension in the middle of one operand and at the end of the other, a broadcast one.
  check(R"(graph g(%x: f32[5,3,7], %y: f32[7,9,3], %z: f32[5,7]) {
    %0 = dot(%x, %y) {lhs_batch = [1], rhs_batch = [2], lhs_contract = [2], rhs_contract = [0]} : f32[3,5,9]
    return "y" = %0
  })");
  check(R"(graph g(%x: f32[4,3,5,7], %y: f32[7,9]) {
    %0 = broadcast(%y) {shape = [4,3,7,9], dims = [2,3]} : f32[4,3,7,9]
    %1 = dot(%x, %0) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]} : f32[4,3,5,9]
    %2 = neg(%1) : f32[4,3,5,9]
    return "y" = %2
  })");
}

TEST(Dot, BatchedWeights) {
  check(R"(graph g(%x: f32[3,5,7]) {
    %w = constant {value = f32[3,7,33]{1}}
    %0 = dot(%x, %w) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]} : f32[3,5,33]
    return "y" = %0
  })");
}

TEST(Dot, OtherTypes) {
  check(R"(graph g(%x: f16[9,33], %w: f16[33,20]) {
    %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f16[9,20]
    %1 = abs(%0) : f16[9,20]
    return "y" = %1
  })",
        1e-3);
  check(R"(graph g(%x: bf16[9,33]) {
    %w = constant {value = bf16[33,20]{1}}
    %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], out = f32} : f32[9,20]
    return "y" = %0
  })");
  check(R"(graph g(%x: f64[9,33], %w: f64[33,20]) {
    %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f64[9,20]
    return "y" = %0
  })",
        1e-14);
  check(R"(graph g(%x: u8[9,33]) {
    %w = constant {value = i8[33,20]{1}}
    %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : i32[9,20]
    return "y" = %0
  })");
  check(R"(graph g(%x: i64[9,33], %w: i64[33,20]) {
    %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : i64[9,20]
    return "y" = %0
  })");
}

TEST(Conv, DenseWithBiasResidualAndRelu) {
  for (int threads : {1, 2}) {
    check(R"(graph g(%x: f32[2,13,15,24], %r: f32[2,13,15,40]) {
      %w = constant {value = f32[40,24,3,3]{1}}
      %b = constant {value = f32[40]{1}}
      %z = constant {value = f32[]{0}}
      %0 = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32[2,13,15,40]
      %1 = broadcast(%b) {shape = [2,13,15,40], dims = [3]} : f32[2,13,15,40]
      %2 = add(%0, %1) : f32[2,13,15,40]
      %3 = add(%2, %r) : f32[2,13,15,40]
      %4 = broadcast(%z) {shape = [2,13,15,40], dims = []} : f32[2,13,15,40]
      %5 = max(%3, %4) : f32[2,13,15,40]
      return "y" = %5
    })",
          1e-5, {.threads = threads});
  }
}

TEST(Conv, Variants) {
  const auto conv = [&](const char* x, const char* w, const char* attrs, const char* y) {
    check(std::string("graph g(%x: ") + x + ") {\n  %w = constant {value = " + w + "{1}}\n  %0 = conv(%x, %w) {" +
          attrs + ", layout = \"nhwc\"} : " + y + "\n  %1 = abs(%0) : " + y + "\n  return \"y\" = %1\n}");
  };
  // Pointwise, strided pointwise, grouped, depthwise, dilated, transposed, one- and three-dimensional, cropped.
  conv("f32[2,7,9,24]", "f32[40,24,1,1]",
       "strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1",
       "f32[2,7,9,40]");
  conv("f32[2,7,9,24]", "f32[40,24,1,1]",
       "strides = [2,2], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1",
       "f32[2,4,5,40]");
  conv("f32[1,7,9,24]", "f32[30,8,3,3]",
       "strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 3",
       "f32[1,7,9,30]");
  conv("f32[1,7,19,37]", "f32[37,1,3,3]",
       "strides = [2,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 37",
       "f32[1,4,19,37]");
  conv("f32[1,9,9,5]", "f32[6,5,3,3]",
       "strides = [1,1], low = [2,2], high = [2,2], dilations = [2,2], lhs_dilations = [1,1], groups = 1",
       "f32[1,9,9,6]");
  conv("f32[1,4,5,6]", "f32[7,6,3,3]",
       "strides = [1,1], low = [1,1], high = [2,2], dilations = [1,1], lhs_dilations = [2,2], groups = 1",
       "f32[1,8,10,7]");
  conv("f32[2,50,6]", "f32[7,6,5]",
       "strides = [2], low = [2], high = [2], dilations = [1], lhs_dilations = [1], groups = 1", "f32[2,25,7]");
  conv("f32[1,5,6,7,4]", "f32[6,4,3,2,3]",
       "strides = [1,2,1], low = [1,0,1], high = [1,0,1], dilations = [1,1,1], lhs_dilations = [1,1,1], groups = 1",
       "f32[1,5,3,7,6]");
  conv("f32[1,9,9,16]", "f32[6,16,3,3]",
       "strides = [1,1], low = [-1,-1], high = [-1,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1",
       "f32[1,5,6,6]");
  conv("f32[1,40,1,8]", "f32[6,8,3,1]",
       "strides = [1,1], low = [1,0], high = [1,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1",
       "f32[1,40,1,6]");
}

TEST(Conv, WinogradOnOddSizes) {
  for (const auto& [h, w, c, o] : {std::array{14, 14, 64, 96}, {13, 19, 33, 50}, {5, 26, 40, 33}}) {
    for (const char* type : {"f32", "f16"}) {
      const auto graph = parse_with_random_weights(
          fmt::format("graph g(%x: {0}[2,{1},{2},{3}]) {{\n  %w = constant {{value = {0}[{4},{3},3,3]{{1}}}}\n"
                      "  %0 = conv(%x, %w) {{strides = [1,1], low = [1,0], high = [1,2], dilations = [1,1], "
                      "lhs_dilations = [1,1], groups = 1, layout = \"nhwc\"}} : {0}[2,{1},{2},{4}]\n"
                      "  %1 = neg(%0) : {0}[2,{1},{2},{4}]\n  return \"y\" = %1\n}}",
                      type, h, w, c, o),
          3);
      EXPECT_EQ(testing::decisions(graph, Target::host_cpu(1))[0].substr(0, 9), "winograd:");
      for (int threads : {1, 2}) {
        check_graph(graph, type[1] == '3' ? 5e-6 : 1e-3, {.threads = threads, .pieces = 2 * threads - 1});
      }
    }
  }
}

// Sums of integers are exact. The elements of %x lie within a range of 200.
// Each size with one pair of types, or with each of them where all instances are wanted.
TEST(Conv, IntegerWinogradOnOddSizes) {
  size_t size = 0;
  for (const auto& [h, w, c, o] : {std::array{14, 14, 64, 96}, {13, 19, 33, 50}, {5, 26, 40, 33}}) {
    ++size;
    size_t pair = 0;
    for (const auto& [image, filters] : {std::pair{"u8", "i8"}, {"i8", "u8"}, {"i16", "i16"}}) {
      if (++pair != size && !test::takes_all_instances()) continue;
      const auto graph = parse_with_random_weights(
          fmt::format("graph g(%x: {0}[2,{1},{2},{3}]) {{\n  %w = constant {{value = {5}[{4},{3},3,3]{{1}}}}\n"
                      "  %0 = conv(%x, %w) {{strides = [1,1], low = [1,0], high = [1,2], dilations = [1,1], "
                      "lhs_dilations = [1,1], groups = 1, layout = \"nhwc\", {6}out = i32}} : i32[2,{1},{2},{4}]\n"
                      "  %1 = neg(%0) : i32[2,{1},{2},{4}]\n  return \"y\" = %1\n}}",
                      image, h, w, c, o, filters, image[1] == '1' ? "image_range = 255, " : ""),
          3);
      Target avx2 = Target::host_cpu(1);
      avx2.cpu.isa = std::min(avx2.cpu.isa, CpuIsa::kAvx2), avx2.cpu.avx512_vnni = false;
      EXPECT_EQ(testing::decisions(graph, avx2)[0].substr(0, 9), "winograd:");
      for (const CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512}) {
        for (const unsigned choice : {0, 1}) {  // one of them is the direct form
          check_graph(graph, 0, {.isa = isa, .choice = choice});
        }
      }
    }
  }
}

// A scalar in the epilogue has no columns.
TEST(Conv, EpilogueReshapesToAScalar) {
  check_graph(
      parse_with_random_weights("graph g(%x: f32[1,3,2,4], %b: f32[1]) {\n  %w = constant {value = f32[8,4,2,2]{1}}\n"
                                "  %0 = conv(%x, %w) {strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], "
                                "lhs_dilations = [1,1], groups = 1, layout = \"nhwc\"} : f32[1,2,1,8]\n"
                                "  %1 = reshape(%b) {shape = []} : f32[]\n"
                                "  %2 = broadcast(%1) {shape = [1,2,1,8], dims = []} : f32[1,2,1,8]\n"
                                "  %3 = add(%0, %2) : f32[1,2,1,8]\n  return \"y\" = %3\n}",
                                4),
      1e-5);
}

TEST(Conv, StoresPhasesWithinBounds) {
  for (const std::string& text : testing::phase_graphs("f32")) {
    check_graph(parse_with_random_weights(text, 5), 5e-6, {.threads = 2});
  }
  check_graph(parse_with_random_weights(testing::phase_graphs("f16")[0], 5), 2e-3);
}

// Columns (row phase, channel, pixel phase) whose pixel phases are neighbours in memory, with a border that is cropped.
TEST(Conv, InterleavesPhases) {
  struct Case {
    int64_t width, groups, features, phases, crop;
  };
  for (const auto& [width, groups, features, phases, crop] :
       {Case{5, 1, 3, 2, 1}, {33, 1, 9, 2, 0}, {260, 1, 2, 2, 3}, {9, 2, 2, 4, 2}, {7, 3, 1, 8, 5}, {6, 1, 2, 16, 7}}) {
    for (const char* type : {"f32", "f16", "i32"}) {
      if (width != 5 && type != std::string_view("f32")) continue;
      const int64_t columns = 2 * groups * features * phases, channels = groups * features;
      const int64_t wide = width * phases, kept = wide - 2 * crop;
      const std::string text = fmt::format(
          R"(graph g(%x: {0}[2,4,{1},{2}], %r: {0}[2,{4},7,{6}]) {{
  %w = constant {{value = {0}[{3},4,2,2]{{1}}}}
  %0 = conv(%x, %w) {{strides = [1,1], low = [0,1], high = [1,0], dilations = [1,1], lhs_dilations = [1,1], groups = {7}, layout = "nhwc"}} : {0}[2,4,{1},{3}]
  %1 = reshape(%0) {{shape = [2,4,{1},{7},2,{8},{9}]}} : {0}[2,4,{1},{7},2,{8},{9}]
  %2 = transpose(%1) {{perm = [0,1,4,2,6,3,5]}} : {0}[2,4,2,{1},{9},{7},{8}]
  %3 = reshape(%2) {{shape = [2,8,{5},{4}]}} : {0}[2,8,{5},{4}]
  %4 = slice(%3) {{starts = [0,1,{10},0], limits = [2,8,{11},{4}], strides = [1,1,1,1]}} : {0}[2,7,{6},{4}]
  %5 = transpose(%4) {{perm = [0,3,1,2]}} : {0}[2,{4},7,{6}]
  %6 = add(%5, %r) : {0}[2,{4},7,{6}]
  return "y" = %6
}})",
          type, width, 4 * groups, columns, channels, wide, kept, groups, features, phases, crop, wide - crop);
      SCOPED_TRACE(text);
      check_graph(parse_with_random_weights(text, 5), type == std::string_view("f16") ? 2e-3 : 1e-5);
    }
  }
}

// Row phases and pixel phases of two taps, of which the first of each has one.
ir::Graph with_short_phases(const ir::Graph& graph, int64_t features, int64_t phases) {
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const ir::Node& node) -> std::optional<std::vector<ir::ValueId>> {
    const Tensor* const from = graph.constant_of(node.outputs[0]);
    if (from == nullptr || from->shape().size() != 4) return std::nullopt;
    Tensor w = Tensor::unfilled(from->dtype(), from->shape());
    std::memcpy(w.mutable_data(), from->data(), from->bytes());
    const auto values = w.mutable_values<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t tap = static_cast<int64_t>(i) % 4, column = static_cast<int64_t>(i) / 4 / w.shape()[1];
      const bool first_row = column / (features * phases) % 2 == 0, first_pixel = column % phases == 0;
      if ((first_row && tap < 2) || (first_pixel && tap % 2 == 0)) values[i] = 0;
    }
    return std::vector{r.constant(w)};
  });
}

TEST(Conv, LeavesOutZerosOfPhases) {
  struct Case {
    int64_t width, groups, features, phases;
    CpuIsa isa;
  };
  for (const auto& [width, groups, features, phases, isa] : {Case{5, 1, 40, 2, CpuIsa::kAvx512},
                                                             {19, 1, 64, 4, CpuIsa::kAvx512},
                                                             {260, 2, 32, 2, CpuIsa::kAvx2},
                                                             {9, 1, 37, 8, CpuIsa::kAvx2}}) {
    const int64_t channels = groups * features, wide = width * phases;
    const std::string text = fmt::format(
        R"(graph g(%x: f32[2,3,{0},{1}], %r: f32[2,{2},5,{3}]) {{
  %w = constant {{value = f32[{4},4,2,2]{{1}}}}
  %0 = conv(%x, %w) {{strides = [1,1], low = [0,1], high = [1,0], dilations = [1,1], lhs_dilations = [1,1], groups = {5}, layout = "nhwc"}} : f32[2,3,{0},{4}]
  %1 = reshape(%0) {{shape = [2,3,{0},{5},2,{6},{7}]}} : f32[2,3,{0},{5},2,{6},{7}]
  %2 = transpose(%1) {{perm = [0,1,4,2,6,3,5]}} : f32[2,3,2,{0},{7},{5},{6}]
  %3 = reshape(%2) {{shape = [2,6,{8},{2}]}} : f32[2,6,{8},{2}]
  %4 = slice(%3) {{starts = [0,1,1,0], limits = [2,6,{8},{2}], strides = [1,1,1,1]}} : f32[2,5,{3},{2}]
  %5 = transpose(%4) {{perm = [0,3,1,2]}} : f32[2,{2},5,{3}]
  %6 = add(%5, %r) : f32[2,{2},5,{3}]
  return "y" = %6
}})",
        width, 4 * groups, channels, wide - 1, 2 * channels * phases, groups, features, phases, wide);
    SCOPED_TRACE(text);
    check_graph(with_short_phases(parse_with_random_weights(text, 5), features, phases), 1e-5,
                {.threads = 2, .isa = isa});
  }
}

TEST(Conv, FiltersThatAreNotConstant) {
  check(R"(graph g(%x: f32[1,7,9,5], %w: f32[6,5,3,3]) {
    %0 = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32[1,7,9,6]
    return "y" = %0
  })");
}

TEST(Conv, ReadsChannelsFirstImageThroughItsPrologue) {
  check(R"(graph g(%x: f32[2,3,21,37]) {
    %w = constant {value = f32[10,3,3,3]{1}}
    %0 = transpose(%x) {perm = [0,2,3,1]} : f32[2,21,37,3]
    %1 = conv(%0, %w) {strides = [2,2], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32[2,11,19,10]
    return "y" = %1
  })");
  check(R"(graph g(%x: f16[2,3,40]) {
    %w = constant {value = f16[10,3,3]{1}}
    %0 = transpose(%x) {perm = [0,2,1]} : f16[2,40,3]
    %1 = conv(%0, %w) {strides = [1], low = [1], high = [1], dilations = [1], lhs_dilations = [1], groups = 1, layout = "nhwc"} : f16[2,40,10]
    return "y" = %1
  })",
        1e-3);
}

// Many channels, in groups, dilated, unpadded and of one tap.
TEST(Conv, ReadsManyChannelsFirstThroughItsPrologue) {
  for (CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    check(R"(graph g(%x: f32[2,21,19,37]) {
      %w = constant {value = f32[10,21,3,2]{1}}
      %0 = transpose(%x) {perm = [0,2,3,1]} : f32[2,19,37,21]
      %1 = conv(%0, %w) {strides = [2,1], low = [3,0], high = [2,1], dilations = [3,2], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32[2,9,36,10]
      return "y" = %1
    })",
          1e-5, {.isa = isa});
    check(R"(graph g(%x: f32[2,36,11,33], %b: f32[48]) {
      %w = constant {value = f32[48,9,1,1]{1}}
      %0 = transpose(%x) {perm = [0,2,3,1]} : f32[2,11,33,36]
      %1 = conv(%0, %w) {strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 4, layout = "nhwc"} : f32[2,11,33,48]
      %2 = broadcast(%b) {shape = [2,11,33,48], dims = [3]} : f32[2,11,33,48]
      %3 = add(%1, %2) : f32[2,11,33,48]
      %4 = transpose(%3) {perm = [0,3,1,2]} : f32[2,48,11,33]
      return "y" = %4
    })",
          1e-5, {.threads = 2, .isa = isa});
  }
}

// Some windows lie in the padding as a whole, some with single lines.
TEST(Conv, WindowsInThePadding) {
  for (CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    check(R"(graph g(%x: f32[2,11,13,24]) {
      %w = constant {value = f32[40,24,3,3]{1}}
      %0 = conv(%x, %w) {strides = [2,1], low = [9,5], high = [10,5], dilations = [2,5], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32[2,13,13,40]
      return "y" = %0
    })",
          1e-5, {.isa = isa});
  }
}

// Planes of channels: vectors of results run along pixels.
TEST(Conv, ChannelsFirstResults) {
  check(R"(graph g(%x: f32[2,9,13,3], %w: f32[21,3,3,3], %b: f32[21], %r: f32[2,21,9,13]) {
    %0 = conv(%x, %w) {strides = [1,1], low = [2,1], high = [2,1], dilations = [2,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32[2,9,13,21]
    %1 = broadcast(%b) {shape = [2,9,13,21], dims = [3]} : f32[2,9,13,21]
    %2 = add(%0, %1) : f32[2,9,13,21]
    %3 = transpose(%2) {perm = [0,3,1,2]} : f32[2,21,9,13]
    %4 = add(%3, %r) : f32[2,21,9,13]
    return "y" = %4
  })");
  check(R"(graph g(%x: f32[1,9,23,8], %w: f32[21,8,1,1]) {
    %0 = conv(%x, %w) {strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32[1,9,23,21]
    %1 = transpose(%0) {perm = [0,3,1,2]} : f32[1,21,9,23]
    return "y" = %1
  })");
}

TEST(Conv, BytesGiveIntegers) {
  check(R"(graph g(%x: u8[1,7,9,5], %w: i8[6,5,3,3]) {
    %0 = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : i32[1,7,9,6]
    return "y" = %0
  })");
}

TEST(Window, Pooling) {
  check(R"(graph g(%x: f32[2,13,15,24]) {
    %0 = window_reduce(%x) {kind = "max", window = [1,3,3,1], strides = [1,2,2,1], low = [0,1,1,0], high = [0,1,1,0], dilations = [1,1,1,1]} : f32[2,7,8,24]
    return "y" = %0
  })");
  check(R"(graph g(%x: f32[2,13,15,3], %c: f32[13,15]) {
    %0 = window_reduce(%x) {kind = "sum", window = [1,3,2,1], strides = [1,1,1,1], low = [0,1,0,0], high = [0,1,1,0], dilations = [1,1,1,1]} : f32[2,13,15,3]
    %1 = broadcast(%c) {shape = [2,13,15,3], dims = [1,2]} : f32[2,13,15,3]
    %2 = mul(%0, %1) : f32[2,13,15,3]
    return "y" = %2
  })");
  check(R"(graph g(%x: f16[2,3,13,15]) {
    %0 = window_reduce(%x) {kind = "min", window = [1,1,3,3], strides = [1,1,2,2], low = [0,0,0,0], high = [0,0,0,0], dilations = [1,1,2,1]} : f16[2,3,5,7]
    return "y" = %0
  })");
  check(R"(graph g(%x: u8[40]) {
    %0 = window_reduce(%x) {kind = "max", window = [5], strides = [1], low = [2], high = [2], dilations = [1]} : u8[40]
    return "y" = %0
  })");
  check(R"(graph g(%x: f16[2,3,13,45], %c: f16[13,45]) {
    %0 = window_reduce(%x) {kind = "sum", window = [1,1,5,7], strides = [1,1,1,1], low = [0,0,2,3], high = [0,0,2,3], dilations = [1,1,1,1]} : f16[2,3,13,45]
    %1 = broadcast(%c) {shape = [2,3,13,45], dims = [2,3]} : f16[2,3,13,45]
    %2 = mul(%0, %1) : f16[2,3,13,45]
    return "y" = %2
  })",
        1e-3);
  check(R"(graph g(%x: i64[3,5,6,7,10]) {
    %0 = window_reduce(%x) {kind = "max", window = [1,1,3,2,4], strides = [1,1,1,2,3], low = [0,0,1,1,2], high = [0,0,1,0,3], dilations = [1,1,1,2,1]} : i64[3,5,6,3,4]
    return "y" = %0
  })");
  for (const char* dtype : {"i4", "u4", "i2", "u2"}) {  // sums wrap
    check(fmt::format(R"(graph g(%x: {0}[6,9]) {{
      %0 = window_reduce(%x) {{kind = "sum", window = [3,2], strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1]}} : {0}[4,8]
      %1 = cast(%0) {{to = i32}} : i32[4,8]
      return "y" = %1
    }})",
                      dtype));
  }
}

TEST(Decisions, SayWhatWasChosen) {
  Target target = Target::host_cpu(1);
  const auto graph = parse_with_random_weights(R"(graph g(%x: f32[2,14,14,64]) {
    %w = constant {value = f32[64,1,3,3]{1}}
    %0 = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 64, layout = "nhwc"} : f32[2,14,14,64]
    %1 = exp(%0) : f32[2,14,14,64]
    return "y" = %1
  })",
                                               1);
  EXPECT_EQ(testing::decisions(graph, target),
            std::vector<std::string>{"depthwise: depthwise 14x14 64->64 k3x3 g64 + exp"});
}

}  // namespace
}  // namespace heddle
