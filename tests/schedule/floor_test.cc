// Floors: what is counted of what kernels read and compute, on graphs with known answers.
#include "schedule/floor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "schedule/product/contraction.h"
#include "schedule/region/stitch.h"

namespace heddle::schedule {
namespace {

// The graph as one group of a kind.
ir::Group whole(const ir::Graph& graph, ir::GroupKind kind) {
  ir::Group group{kind, {}, 0, {}, {}};
  for (ir::NodeId id = 0; id < graph.nodes().size(); ++id) {
    const ir::Op op = graph.node(id).op;
    if (op == ir::Op::kParameter || op == ir::Op::kConstant) {
      group.inputs.push_back(graph.node(id).outputs[0]);
      continue;
    }
    group.nodes.push_back(id);
    if (op == ir::Op::kDot || op == ir::Op::kConv || op == ir::Op::kWindowReduce) group.anchor = id;
  }
  for (const auto& port : graph.outputs()) group.outputs.push_back(port.value);
  return group;
}

double read_of(const std::string& text) {
  const ir::Graph graph = ir::parse(text);
  return elements_read(graph, whole(graph, ir::GroupKind::kStitch), graph.inputs()[0].value);
}

TEST(Floor, OnlyWhatIsReadCounts) {
  EXPECT_EQ(read_of(R"(graph(%x: f32[1000,8], %i: i64[3]) {
    %y = gather(%x, %i) {dim = 0}
    return "y" = %y
  })"),
            24);
  EXPECT_EQ(read_of(R"(graph(%x: f32[1000,8], %i: i64[3]) {
    %r = reshape(%x) {shape = [500,16]}
    %g = gather(%r, %i) {dim = 0}
    %e = exp(%g)
    %s = reduce(%e) {kind = "sum", dims = [1]}
    return "y" = %s
  })"),
            48);
  EXPECT_EQ(read_of(R"(graph(%x: f32[100,8]) {
    %a = slice(%x) {starts = [0,0], limits = [10,8], strides = [1,2]}
    %b = slice(%x) {starts = [90,0], limits = [100,4], strides = [1,1]}
    %y = mul(%a, %b)
    return "y" = %y
  })"),
            80);
  EXPECT_EQ(read_of(R"(graph(%x: f32[100,8], %i: i64[3]) {
    %g = gather(%x, %i) {dim = 0}
    %s = reduce(%x) {kind = "max", dims = [0]}
    return "y" = %g, "s" = %s
  })"),
            800);
  EXPECT_EQ(read_of(R"(graph(%x: f32[8]) {
    %y = broadcast(%x) {shape = [100,8], dims = [1]}
    return "y" = %y
  })"),
            8);
}

// A table in front of a product, from which four rows are gathered.
double floor_behind_table(int64_t rows, const Target& target) {
  const std::string text = fmt::format(R"(graph(%t: f32[{0},64], %i: i64[4], %w: f32[64,32]) {{
    %x = gather(%t, %i) {{dim = 0}}
    %y = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}
    return "y" = %y
  }})",
                                       rows);
  const ir::Graph graph = ir::parse(text);
  double seconds = 0;
  for (const auto& kernel : schedule(graph, whole(graph, ir::GroupKind::kContraction), target).kernels) {
    seconds += kernel.floor_seconds;
  }
  return seconds;
}

TEST(Floor, RowsOfATableInFrontOfAProduct) {
  for (const Target& target : {Target::host_cpu(1), Target::cuda_h200(1)}) {
    EXPECT_EQ(floor_behind_table(100, target), floor_behind_table(1000000, target));
  }
}

TEST(Floor, CachedDataTakesTheTimeOfCaches) {
  for (const Target& target : {Target::host_cpu(2), Target::cuda_h200(1)}) {
    const double cached = cached_bytes(target);
    EXPECT_LT(least_seconds(cached, target), memory_seconds(cached, target));
    EXPECT_GT(least_seconds(100 * cached, target), 0.9 * memory_seconds(100 * cached, target));
  }
}

double conv_floor(int64_t side, const std::string& attributes, const Target& target, const char* type = "f32") {
  const ir::Graph graph = ir::parse(fmt::format(R"(graph(%x: {2}[1,{0},{0},64]) {{
    %w = constant {{value = {2}[64,64,3,3]{{1}}}}
    %y = conv(%x, %w) {{{1}, dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"}}
    return "y" = %y
  }})",
                                                side, attributes, type));
  return schedule(graph, whole(graph, ir::GroupKind::kContraction), target).kernels.at(0).floor_seconds;
}

// F(4x4, 3x3) takes 36 multiplications for 144.
TEST(Floor, WinogradMultipliesLess) {
  const Target target = Target::host_cpu(1);
  const double direct = 2.0 * 56 * 56 * 64 * 64 * 9 / (target.cpu.peak_gflops() * 1e9);
  EXPECT_NEAR(conv_floor(56, "strides = [1,1], low = [1,1], high = [1,1]", target) / direct, 0.25, 0.01);
  // Words of two integers.
  EXPECT_NEAR(conv_floor(56, "strides = [1,1], low = [1,1], high = [1,1], out = i32", target, "i8") / direct, 0.125,
              0.01);
}

TEST(Floor, PaddingIsNotMultiplied) {
  tile::WindowShape s;
  s.batch = 2, s.c = 3;
  s.in[1] = s.in[2] = s.out[1] = s.out[2] = 5;
  s.kernel[1] = s.kernel[2] = 3, s.low[1] = s.low[2] = 1;
  EXPECT_EQ(products_inside(s), 2 * 3 * 13 * 13);
  s.stride[1] = 2, s.out[1] = 3, s.low[1] = 0;  // the third window hangs over
  EXPECT_EQ(products_inside(s), 2 * 3 * 7 * 13);
}

TEST(Floor, LongWindowsAreFoldedSideBySide) {
  tile::WindowShape s;
  s.batch = 2, s.c = 3;
  s.in[1] = s.in[2] = s.out[1] = s.out[2] = 64;
  s.kernel[2] = 2;
  EXPECT_EQ(least_folds(s), 2 * 3 * 64 * 64);
  s.kernel[1] = s.kernel[2] = 31;
  EXPECT_EQ(least_folds(s), 2 * 2 * 3 * 64 * 64);
}

}  // namespace
}  // namespace heddle::schedule
