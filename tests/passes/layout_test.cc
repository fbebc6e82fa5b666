#include "pass_test_util.h"

namespace heddle::passes {
namespace {

const std::vector<std::string> kLayoutPasses = {"canonicalize",    "fold",         "canonicalize", "layout",
                                                "sink_transposes", "canonicalize", "fold",         "cse"};

// On a target that convolves with the channels last, but for depthwise convolutions.
ir::Graph channels_last(const std::string& text, const std::vector<std::string>& passes = kLayoutPasses) {
  return run_passes(ir::parse(text), passes, {Target::cuda_h200(1)});
}

int count(const ir::Graph& graph, ir::Op op) {
  int n = 0;
  for (const ir::Node& node : graph.nodes()) n += node.op == op;
  return n;
}

// Text of a convolution without stride.
std::string conv(std::string out, std::string in, std::string weights, int pad) {
  const std::string p = std::to_string(pad);
  return "%" + out + " = conv(%" + in + ", %" + weights + ") {strides = [1,1], low = [" + p + "," + p + "], high = [" +
         p + "," + p + "], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = \"nchw\"}\n";
}

TEST(Layout, OneConvolutionHasTransposesAtItsBorder) {
  const ir::Graph after = channels_last(R"(graph(%x: f32[1,3,8,8], %w: f32[4,3,3,3], %b: f32[4]) {
      %c = conv(%x, %w) {strides = [2,2], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"}
      %v = broadcast(%b) {shape = [1,4,4,4], dims = [1]}
      %y = add(%c, %v)
      return "y" = %y
    })",
                                        {"layout", "sink_transposes"});
  const ir::Graph expected = ir::parse(R"(graph(%x: f32[1,3,8,8], %w: f32[4,3,3,3], %b: f32[4]) {
      %t = transpose(%x) {perm = [0,2,3,1]}
      %c = conv(%t, %w) {strides = [2,2], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"}
      %v = broadcast(%b) {shape = [1,4,4,4], dims = [3]}
      %a = add(%c, %v)
      %y = transpose(%a) {perm = [0,3,1,2]}
      return "y" = %y
    })");
  EXPECT_EQ(ir::print(after), ir::print(expected));
}

TEST(Layout, AResidualBlockWithPoolingKeepsChannelsLastInside) {
  const std::string text =
      "graph(%x: f32[2,3,9,9], %w1: f32[4,3,3,3], %w2: f32[4,4,3,3], %w3: f32[4,4,1,1], %b: f32[4]) {" +
      conv("c1", "x", "w1", 1) + "%z = constant {value = f32[2,4,9,9]{0}}\n %r1 = max(%c1, %z)\n" +
      conv("c2", "r1", "w2", 1) + "%bb = broadcast(%b) {shape = [2,4,9,9], dims = [1]} %c2b = add(%c2, %bb)" +
      conv("c3", "r1", "w3", 0) + R"(
      %s = add(%c2b, %c3)
      %p = window_reduce(%s) {kind = "max", window = [1,1,3,3], strides = [1,1,2,2], low = [0,0,1,1], high = [0,0,1,1], dilations = [1,1,1,1]}
      %k = concat(%p, %p) {dim = 1}
      %m = reduce(%k) {kind = "sum", dims = [2,3]}
      return "y" = %m
    })";
  const ir::Graph after = channels_last(text);
  EXPECT_EQ(count(after, ir::Op::kTranspose), 1) << ir::print(after);  // of the picture
  expect_same(ir::parse(text), after);
}

// Whose channels come first where the model wants them so, and last beside other convolutions and where the model has
// them last.
TEST(Layout, DepthwiseConvolutionsAndPoolsFollowTheirNeighbours) {
  const auto depthwise = [](const std::string& out, const std::string& in) {
    return "%" + out + " = conv(%" + in +
           ", %w) {strides = [1], low = [2], high = [0], dilations = [1], lhs_dilations = [1], groups = 8, layout = "
           "\"nchw\"}\n";
  };
  const std::string begin = "graph(%x: f16[2,8,30], %w: f16[8,1,3], %v: f16[4,8,1]) {";
  const std::string alone = begin + depthwise("c", "x") + R"(
      %r = abs(%c)
      %p = window_reduce(%r) {kind = "max", window = [1,1,3], strides = [1,1,2], low = [0,0,1], high = [0,0,1], dilations = [1,1,1]}
      return "y" = %p
    })";
  const ir::Graph first = channels_last(alone);
  EXPECT_EQ(count(first, ir::Op::kTranspose), 0) << ir::print(first);
  expect_same(ir::parse(alone), first);

  const std::string beside = begin + depthwise("c", "x") + R"(
      %y = conv(%c, %v) {strides = [1], low = [0], high = [0], dilations = [1], lhs_dilations = [1], groups = 1, layout = "nchw"}
      return "y" = %y
    })";
  const ir::Graph last = channels_last(beside);
  EXPECT_EQ(count(last, ir::Op::kTranspose), 2) << ir::print(last);
  expect_same(ir::parse(beside), last);

  const std::string turned = "graph(%s: f16[2,30,8], %w: f16[8,1,3]) {\n%x = transpose(%s) {perm = [0,2,1]}\n" +
                             depthwise("c", "x") + "%y = transpose(%c) {perm = [0,2,1]} return \"y\" = %y }";
  const ir::Graph kept = channels_last(turned);
  EXPECT_EQ(count(kept, ir::Op::kTranspose), 0) << ir::print(kept);
  expect_same(ir::parse(turned), kept);
}

TEST(Layout, NormalisationOverGroupsOfChannelsDoesNotStopTransposes) {
  const std::string text = "graph(%x: f32[2,3,5,5], %w: f32[8,3,3,3], %v: f32[4,8,1,1], %g: f32[8]) {" +
                           conv("c", "x", "w", 1) + R"(
      %r = reshape(%c) {shape = [2,4,50]}
      %s = reduce(%r) {kind = "sum", dims = [2]}
      %sw = broadcast(%s) {shape = [2,4,50], dims = [0,1]}
      %d = sub(%r, %sw)
      %q = mul(%d, %d)
      %v1 = reduce(%q) {kind = "sum", dims = [2]}
      %one = constant {value = f32[2,4]{1}}
      %v2 = add(%v1, %one)
      %v3 = sqrt(%v2)
      %v4 = broadcast(%v3) {shape = [2,4,50], dims = [0,1]}
      %n = div(%d, %v4)
      %m = reshape(%n) {shape = [2,8,5,5]}
      %gb = broadcast(%g) {shape = [2,8,5,5], dims = [1]}
      %h = mul(%m, %gb))" + conv("y", "h", "v", 0) +
                           "return \"y\" = %y }";
  const ir::Graph after = channels_last(text);
  EXPECT_EQ(count(after, ir::Op::kTranspose), 2) << ir::print(after);  // of the input and of the output
  expect_same(ir::parse(text), after);
}

TEST(Layout, NearestResizingIsRepeatedWithChannelsLast) {
  const std::string text = "graph(%x: f32[1,3,4,5], %w: f32[4,3,1,1], %v: f32[2,4,1,1]) {" + conv("c", "x", "w", 0) +
                           R"(
      %b = broadcast(%c) {shape = [1,4,4,2,5,2], dims = [0,1,2,4]}
      %r = reshape(%b) {shape = [1,4,8,10]})" +
                           conv("y", "r", "v", 0) + "return \"y\" = %y }";
  const ir::Graph after = channels_last(text);
  EXPECT_EQ(count(after, ir::Op::kTranspose), 2) << ir::print(after);
  expect_same(ir::parse(text), after);
}

TEST(Layout, PicturesAsSequencesNeedNoTranspose) {
  // The patches of a vision transformer: [N, C, H, W] -> [N, H * W, C].
  const std::string text = "graph(%x: f32[2,3,4,4], %w: f32[6,3,1,1]) {" + conv("c", "x", "w", 0) + R"(
      %r = reshape(%c) {shape = [2,6,16]}
      %t = transpose(%r) {perm = [0,2,1]}
      return "y" = %t
    })";
  const ir::Graph after = channels_last(text);
  EXPECT_EQ(count(after, ir::Op::kTranspose), 1) << ir::print(after);
  expect_same(ir::parse(text), after);
}

// Few channels fill no vectors, on a CPU; the pool between two such convolutions stays with them.
TEST(Layout, FewChannelsStayFirst) {
  Target cpu = Target::host_cpu(1);
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    cpu.cpu.isa = isa;
    const auto after = [&](const std::string& text) {
      const ir::Graph graph = run_passes(ir::parse(text), kLayoutPasses, {cpu});
      expect_same(ir::parse(text), graph);
      return count(graph, ir::Op::kTranspose);
    };
    EXPECT_EQ(after("graph(%x: f32[1,3,40,48], %w: f32[3,3,3,3], %v: f32[2,3,1,1]) {" + conv("c", "x", "w", 1) + R"(
      %p = window_reduce(%c) {kind = "max", window = [1,1,3,3], strides = [1,1,2,2], low = [0,0,1,1], high = [0,0,1,1], dilations = [1,1,1,1]}
      )" + conv("y", "p", "v", 0) +
                    "return \"y\" = %y }"),
              0);
    // Many channels come last, between transposes at the border.
    EXPECT_EQ(after("graph(%x: f32[1,64,8,8], %w: f32[64,64,3,3], %v: f32[64,64,3,3]) {" + conv("c", "x", "w", 1) +
                    conv("d", "c", "w", 1) + conv("y", "d", "v", 1) + "return \"y\" = %y }"),
              2);
  }
}

// Tensor cores read filters with the channels last; those that a run computes are written so.
TEST(Layout, ComputedFiltersHaveTheirChannelsLast) {
  const std::vector<std::string> passes = {"layout", "sink_transposes", "filters_last", "canonicalize"};
  const auto filters = [](const ir::Graph& graph) {
    std::vector<std::string> found;
    for (const ir::Node& node : graph.nodes()) {
      if (node.op == ir::Op::kConv) found.push_back(node.attrs.has("filters") ? node.attrs.text("filters") : "");
    }
    return found;
  };
  // Those of the user may lie so already: then nothing is transposed.
  const std::string stored =
      "graph(%x: f32[1,3,8,9], %w: f32[4,3,2,3]) { %t = transpose(%w) {perm = [0,3,1,2]} "
      "%h = cast(%t) {to = f16} %f = cast(%h) {to = f32} " +
      conv("y", "x", "f", 1) + "return \"y\" = %y }";
  ir::Graph after = channels_last(stored, passes);
  EXPECT_EQ(filters(after), std::vector<std::string>{"ohwi"});
  EXPECT_EQ(count(after, ir::Op::kTranspose), 2) << ir::print(after);  // of the image and the result
  expect_same(ir::parse(stored), after);
  // A filter of one tap or of one channel is in order as it is; a constant is packed.
  const std::string others = "graph(%x: f32[1,3,8,9], %w: f32[4,3,1,1], %v: f32[2,4,3,3]) { %a = abs(%w) " +
                             conv("c", "x", "a", 0) + "%k = constant {value = f32[4,4,3,3]{0.5}} %l = abs(%k) " +
                             conv("d", "c", "l", 1) + "%u = exp(%v) " + conv("y", "d", "u", 0) + "return \"y\" = %y }";
  after = channels_last(others, passes);
  EXPECT_EQ(filters(after), (std::vector<std::string>{"", "", "ohwi"}));
  expect_same(ir::parse(others), after);
}

// The gradient of an image by 1x1 filters reads the filters as they lie.
TEST(Layout, TransposesOfComputedFiltersOfOneTapAreRead) {
  const std::vector<std::string> passes = {"layout", "sink_transposes", "filters_last", "canonicalize"};
  const auto text = [](const std::string& w, int padding) {
    return "graph(%x: f32[2,4,5,6], %w: " + w + ") { %e = exp(%w) %t = transpose(%e) {perm = [1,0,2,3]} " +
           conv("y", "x", "t", padding) + "return \"y\" = %y }";
  };
  ir::Graph after = channels_last(text("f32[4,3,1,1]", 0), passes);
  EXPECT_EQ(count(after, ir::Op::kDot), 1);
  EXPECT_EQ(count(after, ir::Op::kTranspose), 1) << ir::print(after);  // of the result
  expect_same(ir::parse(text("f32[4,3,1,1]", 0)), after);
  for (const auto& [w, padding] : {std::pair("f32[4,3,1,1]", 1), {"f32[4,3,3,1]", 0}}) {
    after = channels_last(text(w, padding), passes);
    EXPECT_EQ(count(after, ir::Op::kConv), 1);
    expect_same(ir::parse(text(w, padding)), after);
  }
}

}  // namespace
}  // namespace heddle::passes
