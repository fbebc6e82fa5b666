#include "passes/fusion/fusion.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "pass_test_util.h"

namespace heddle::passes {
namespace {

using ir::GroupKind;
using testing::ElementsAre;

// "contraction: dot add" for each group, broadcasts and reshapes left out.
std::vector<std::string> summary(const ir::Graph& graph, const ir::Grouping& grouping) {
  std::vector<std::string> lines;
  for (const ir::Group& group : grouping.groups) {
    std::string line = std::string(to_string(group.kind)) + ":";
    for (ir::NodeId id : group.nodes) {
      const ir::Op op = graph.node(id).op;
      if (op != ir::Op::kBroadcast && op != ir::Op::kReshape) line += " " + std::string(to_string(op));
    }
    lines.push_back(line);
  }
  return lines;
}

ir::Grouping fuse_checked(const ir::Graph& graph, const FusionOptions& options = {},
                          const Target& target = test_target()) {
  ir::Grouping grouping = fuse(graph, target, options);
  check_contract(graph, grouping);
  return grouping;
}

std::vector<std::string> groups_of(std::string_view text, const FusionOptions& options = {},
                                   const Target& target = test_target()) {
  const ir::Graph graph = ir::parse(text);
  return summary(graph, fuse_checked(graph, options, target));
}

const std::string kDot = "{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}";

// A post-norm transformer layer, one head, as an exporter writes it.
std::string transformer_layer() {
  const auto dense = [](std::string out, std::string in, std::string w, std::string b, std::string columns) {
    return "%" + out + "_d = dot(%" + in + ", %" + w + ") " + kDot + "\n%" + out + "_b = broadcast(%" + b +
           ") {shape = [4," + columns + "], dims = [1]}\n%" + out + " = add(%" + out + "_d, %" + out + "_b)\n";
  };
  const auto norm = [](std::string out, std::string in) {
    return "%" + out + "_c = constant {value = f32[4]{0.125}} %" + out + "_e = constant {value = f32[4]{0.00001}}\n%" +
           out + "_s = reduce(%" + in + ") {kind = \"sum\", dims = [1]} %" + out + "_m = mul(%" + out + "_s, %" + out +
           "_c) %" + out + "_mb = broadcast(%" + out + "_m) {shape = [4,8], dims = [0]} %" + out + "_x = sub(%" + in +
           ", %" + out + "_mb) %" + out + "_q = mul(%" + out + "_x, %" + out + "_x) %" + out + "_t = reduce(%" + out +
           "_q) {kind = \"sum\", dims = [1]} %" + out + "_v = mul(%" + out + "_t, %" + out + "_c) %" + out +
           "_w = add(%" + out + "_v, %" + out + "_e) %" + out + "_r = sqrt(%" + out + "_w) %" + out +
           "_rb = broadcast(%" + out + "_r) {shape = [4,8], dims = [0]} %" + out + " = div(%" + out + "_x, %" + out +
           "_rb)\n";
  };
  return "graph(%x: f32[4,8], %w: f32[8,8], %w1: f32[8,16], %w2: f32[16,8], %b: f32[8], %b1: f32[16]) {\n" +
         dense("q", "x", "w", "b", "8") + dense("k", "x", "w", "b", "8") + dense("v", "x", "w", "b", "8") + R"(
      %kt = transpose(%k) {perm = [1,0]}
      %s = dot(%q, %kt) )" +
         kDot + R"(
      %c = constant {value = f32[4,4]{0.5}}
      %sc = mul(%s, %c)
      %m = reduce(%sc) {kind = "max", dims = [1]}
      %mb = broadcast(%m) {shape = [4,4], dims = [0]}
      %u = sub(%sc, %mb)
      %e = exp(%u)
      %z = reduce(%e) {kind = "sum", dims = [1]}
      %zb = broadcast(%z) {shape = [4,4], dims = [0]}
      %p = div(%e, %zb)
      %o = dot(%p, %v) )" +
         kDot + "\n" + dense("proj", "o", "w", "b", "8") + "%res = add(%proj, %x)\n" + norm("n1", "res") +
         dense("h", "n1", "w1", "b1", "16") + R"(
      %i = constant {value = f32[4,16]{0.70710678}}
      %one = constant {value = f32[4,16]{1}}
      %half = constant {value = f32[4,16]{0.5}}
      %g1 = mul(%h, %i)
      %g2 = erf(%g1)
      %g3 = add(%g2, %one)
      %g4 = mul(%h, %g3)
      %g5 = mul(%g4, %half)
      )" +
         dense("f", "g5", "w2", "b", "8") + "%res2 = add(%f, %n1)\n" + norm("n2", "res2") + "return \"y\" = %n2 }";
}

TEST(Fusion, ATransformerLayerIsContractionsAndThreeStitches) {
  const ir::Graph graph = run_pipeline(ir::parse(transformer_layer()), {test_target()});
  expect_same(ir::parse(transformer_layer()), graph, 1e-4);
  EXPECT_THAT(
      summary(graph, fuse_checked(graph)),
      ElementsAre("contraction: dot add",                   // Q, K and V share weights here: one dot
                  "contraction: dot mul",                   // scores, scaled
                  "stitch: reduce sub exp reduce div mul",  // softmax
                  "contraction: dot",                       //
                  "contraction: dot add add",               // bias and residual
                  "stitch: reduce div sub reduce div add sub mul reduce mul sub max mul add rsqrt mul",  // layer norm
                  "contraction: dot add mul erf add mul mul",                                            // GELU
                  "contraction: dot add add",                                                            //
                  "stitch: reduce div sub reduce div add sub mul reduce mul sub max mul add rsqrt mul"));
}

TEST(Fusion, PoliciesDiffer) {
  const std::string text = "graph(%x: f32[4,4], %w: f32[4,4]) { %d = dot(%x, %w) " + kDot + R"(
      %e = exp(%d)
      %n = neg(%e)
      %r = reduce(%n) {kind = "sum", dims = [1]}
      %b = broadcast(%r) {shape = [4,4], dims = [0]}
      %s = sub(%n, %b)
      return "y" = %s
    })";
  EXPECT_THAT(groups_of(text), ElementsAre("contraction: dot exp neg", "stitch: reduce sub"));
  EXPECT_THAT(groups_of(text, {.policy = FusionPolicy::kBasic}),
              ElementsAre("contraction: dot", "stitch: exp neg", "stitch: reduce", "stitch: sub"));
  EXPECT_THAT(
      groups_of(text, {.policy = FusionPolicy::kNone}),
      ElementsAre("contraction: dot", "stitch: exp", "stitch: neg", "stitch: reduce", "stitch:", "stitch: sub"));
}

TEST(Fusion, NoCycleThroughAnotherKernel) {
  // exp and mul are memory-bound and connected, but the dot stands between them.
  const std::string text =
      "graph(%x: f32[4,4]) { %e = exp(%x) %d = dot(%e, %e) " + kDot +
      " %r = reduce(%d) {kind = \"sum\", dims = [0]} %b = broadcast(%r) {shape = [4,4], dims = [1]} "
      "%y = mul(%e, %b) return \"y\" = %y }";
  EXPECT_THAT(groups_of(text), ElementsAre("stitch: exp", "contraction: dot", "stitch: reduce mul"));
}

TEST(Fusion, EpilogueTakesTheStoreLayoutAndTheOperandsView) {
  const auto stored_by = [](const std::string& perm, const std::string& shape) {
    return groups_of(R"(graph(%q: f32[2,5,12], %k: f32[2,5,12]) {
      %q4 = reshape(%q) {shape = [2,5,3,4]}
      %k4 = reshape(%k) {shape = [2,5,3,4]}
      %s = dot(%q4, %k4) {lhs_batch = [0,2], rhs_batch = [0,2], lhs_contract = [3], rhs_contract = [3]}
      %n = neg(%s)
      %t = transpose(%n) {perm = )" +
                     perm + "}\n%r = reshape(%t) {shape = " + shape + R"(}
      %e = exp(%r)
      return "y" = %e
    })");
  };
  // Rows move as a whole.
  EXPECT_THAT(stored_by("[0,2,1,3]", "[2,5,15]"), ElementsAre("contraction: dot neg transpose exp"));
  EXPECT_THAT(stored_by("[0,1,3,2]", "[2,3,25]"), ElementsAre("contraction: dot neg transpose", "stitch: exp"));
}

// On a GPU, where the L2 writes sectors.
// Rows of windows are no matrix: who makes them for the product alone stores them in its order. Nobody makes an input.
TEST(Fusion, WindowsAreStoredInTheOrderOfTheRows) {
  const auto windows = [](std::string above, std::string of) {
    return "graph(%x: f16[16,14,14,32], %w: f16[32,48]) {" + above + "%r = reshape(%" + of +
           R"() {shape = [16,2,7,2,7,32]}
      %t = transpose(%r) {perm = [0,1,3,2,4,5]}
      %y = dot(%t, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [5], rhs_contract = [0]}
      return "y" = %y })";
  };
  EXPECT_THAT(groups_of(windows("%e = exp(%x) ", "e")), ElementsAre("stitch: exp transpose", "contraction: dot"));
  EXPECT_THAT(groups_of(windows("", "x")), ElementsAre("contraction: transpose dot"));
}

TEST(Fusion, LargeResultsAreNotScattered) {
  const auto groups = [](int64_t rows) {
    const ir::Graph graph = ir::parse(fmt::format(
        "graph(%a: f16[{},64], %w: f16[64,64]) {{ %d = dot(%a, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = "
        "[1], rhs_contract = [0]}} %n = neg(%d) %t = transpose(%n) {{perm = [1,0]}} return \"y\" = %t }}",
        rows));
    return summary(graph, fuse(graph, Target::cuda_h200(), {}));
  };
  EXPECT_THAT(groups(64), ElementsAre("contraction: dot neg transpose"));
  EXPECT_THAT(groups(1 << 17), ElementsAre("contraction: dot neg", "stitch: transpose"));
}

TEST(Fusion, EpiloguesComputeAmongPhases) {
  const std::string phases = R"(graph(%x: f32[1,3,4,8], %w: f32[32,8,2,2], %b: f32[8]) {
      %c = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"}
      %s = reshape(%c) {shape = [1,4,5,2,2,8]}
      %t = transpose(%s) {perm = [0,1,3,2,4,5]}
      %y = reshape(%t) {shape = [1,8,10,8]}
      %part = slice(%y) {starts = [0,1,1,0], limits = [1,7,9,8], strides = [1,1,1,1]}
      %bias = broadcast(%b) {shape = [1,6,8,8], dims = [3]}
      %sum = add(%part, %bias)
      %r = exp(%sum))";
  EXPECT_THAT(groups_of(phases + "return \"r\" = %r }"), ElementsAre("contraction: conv transpose slice add exp"));
  // Whole, too.
  EXPECT_THAT(groups_of(phases + "return \"r\" = %r, \"y\" = %y }"),
              ElementsAre("contraction: conv transpose", "stitch: slice add exp"));
  EXPECT_THAT(groups_of(phases + "%n = neg(%c) return \"r\" = %r, \"n\" = %n }"),
              ElementsAre("contraction: conv neg", "stitch: transpose slice add exp"));
}

// Square matrices have one shape in both orders.
TEST(Fusion, EpiloguesDoNotMixOrders) {
  EXPECT_THAT(groups_of("graph(%a: f32[4,4,8], %w: f32[8,8]) { %d = dot(%a, %w) {lhs_batch = [], rhs_batch = [], "
                        "lhs_contract = [2], rhs_contract = [0]} %n = neg(%d) %e = exp(%d) "
                        "%t = transpose(%e) {perm = [1,0,2]} %y = add(%n, %t) return \"y\" = %y }"),
              ElementsAre("contraction: dot neg exp transpose", "stitch: add"));
}

TEST(Fusion, ASideBroadcastStaysWithItsVector) {
  const std::string text = "graph(%x: f32[4,4], %w: f32[4,4], %b: f16[4]) { %d = dot(%x, %w) " + kDot +
                           " %c = cast(%b) {to = f32} %v = broadcast(%c) {shape = [4,4], dims = [1]} %y = add(%d, %v) "
                           "return \"y\" = %y }";
  EXPECT_THAT(groups_of(text), ElementsAre("contraction: dot cast add"));
}

TEST(Fusion, AStepOfARecurrenceIsTwoKernels) {
  const std::string text =
      "graph(%i: i64[], %s: f32[1,4], %w: f32[4,8], %xs: f32[9,1,8]) { %x = gather(%xs, %i) {dim = 0} "
      "%d = dot(%s, %w) " +
      kDot + R"(
      %g = add(%x, %d)
      %a = slice(%g) {starts = [0,0], limits = [1,4], strides = [1,1]}
      %b = slice(%g) {starts = [0,4], limits = [1,8], strides = [1,1]}
      %t = tanh(%a)
      %y = mul(%t, %b)
      return "y" = %y
    })";
  EXPECT_THAT(groups_of(text), ElementsAre("contraction: dot", "stitch: gather add slice slice tanh mul"));
}

TEST(Fusion, SquaresOfAStoredValueAreNotStored) {
  const std::string text = "graph(%x: f32[4,4], %w: f32[4,4]) { %d = dot(%x, %w) " + kDot + R"(
      %t = tanh(%d)
      %q = mul(%t, %t)
      %r = reshape(%t) {shape = [2,8]}
      %p = reshape(%q) {shape = [2,8]}
      %a = reduce(%r) {kind = "sum", dims = [1]}
      %b = reduce(%p) {kind = "sum", dims = [1]}
      return "a" = %a, "b" = %b
    })";
  EXPECT_THAT(groups_of(text), ElementsAre("contraction: dot tanh", "stitch: mul reduce reduce"));
}

TEST(Fusion, SquaresOfAStoredNarrowValueAreNotStoredWide) {
  const std::string text = "graph(%x: f16[8,64], %w: f16[64,64]) { %d = dot(%x, %w) " + kDot + R"(
      %t = tanh(%d)
      %f = cast(%t) {to = f32}
      %q = mul(%f, %f)
      %s = reduce(%q) {kind = "sum", dims = [0]}
      %n = cast(%s) {to = f16}
      %b = broadcast(%n) {shape = [8,64], dims = [1]}
      %y = mul(%t, %b)
      return "y" = %y
    })";
  EXPECT_THAT(groups_of(text), ElementsAre("contraction: dot tanh", "stitch: cast mul reduce cast mul"));
}

TEST(Fusion, SmallRegionsThatDoNotMeetAreOneGroup) {
  EXPECT_THAT(groups_of("graph(%x: f32[40], %y: f32[3,5]) { %a = neg(%x) %b = exp(%y) return \"a\" = %a, \"b\" = %b }"),
              ElementsAre("stitch: neg exp"));
  // A boundary is nothing beside what these take.
  const std::string large =
      "graph(%x: f32[4000000], %y: f32[5000000]) { %a = neg(%x) %b = exp(%y) "
      "return \"a\" = %a, \"b\" = %b }";
  EXPECT_THAT(groups_of(large), ElementsAre("stitch: neg", "stitch: exp"));
}

TEST(Fusion, RegionsThatReadTheSameLargeValueAreOneGroup) {
  EXPECT_THAT(groups_of("graph(%x: f32[4000,1000]) { %a = reduce(%x) {kind = \"sum\", dims = [0]} "
                        "%b = reduce(%x) {kind = \"max\", dims = [1]} return \"a\" = %a, \"b\" = %b }"),
              ElementsAre("stitch: reduce reduce"));
}

TEST(Fusion, EpiloguesTakeWhatMakesTheirOperandsAndReversedRows) {
  const std::string text =
      "graph(%x: f32[4,4], %w: f32[4,4], %s: f32[9,4,4], %i: i64[], %g: f32[4,8]) { %d = dot(%x, %w) " + kDot + R"(
      %t = gather(%s, %i) {dim = 0}
      %u = slice(%g) {starts = [0,2], limits = [4,6], strides = [1,1]}
      %v = mul(%t, %u)
      %y = add(%d, %v)
      %z = reverse(%y) {dims = [0]}
      return "z" = %z
    })";
  EXPECT_THAT(groups_of(text), ElementsAre("contraction: dot gather slice mul add reverse"));
}

// As masks of dropout do, which are functions of an element's number.
TEST(Fusion, EpiloguesNumberTheirElements) {
  EXPECT_THAT(groups_of("graph(%x: f32[4,4], %w: f32[4,4]) { %d = dot(%x, %w) " + kDot + R"(
      %i = iota {dtype = i32, shape = [16], dim = 0}
      %r = reshape(%i) {shape = [4,4]}
      %f = cast(%r) {to = f32}
      %y = mul(%d, %f)
      return "y" = %y
    })"),
              ElementsAre("contraction: dot iota cast mul"));
}

// The gradient of a ReLU in front of a product: where its result was positive.
TEST(Fusion, EpiloguesCompareOperandsThatNothingElseCompares) {
  const auto text = [](const std::string& more) {
    return "graph(%x: bf16[4,4], %w: bf16[4,4], %y: bf16[4,4]) { %d = dot(%x, %w) " + kDot + R"(
      %z = constant {value = bf16[4,4]{0}}
      %l = le(%y, %z)
      %s = select(%l, %z, %d)
      return "s" = %s)" +
           more + "}";
  };
  EXPECT_THAT(groups_of(text("")), ElementsAre("contraction: dot le select"));
  EXPECT_THAT(groups_of(text(", \"l\" = %l")), ElementsAre("stitch: le", "contraction: dot select"));
}

TEST(Fusion, WideningIsLeftToTheReader) {
  const auto text = [](const std::string& more) {
    return "graph(%x: bf16[4,4], %w: bf16[4,4]) { %d = dot(%x, %w) " + kDot + " %c = cast(%d) {to = f32} " + more +
           " %r = reduce(%y) {kind = \"sum\", dims = [1]} return \"y\" = %r }";
  };
  EXPECT_THAT(groups_of(text("%y = neg(%c)")), ElementsAre("contraction: dot cast neg", "stitch: reduce"));
  EXPECT_THAT(
      groups_of(text("%m = reduce(%c) {kind = \"max\", dims = [1]} %b = broadcast(%m) {shape = [4,4], dims = [0]} "
                     "%y = sub(%c, %b)")),
      ElementsAre("contraction: dot", "stitch: cast reduce sub reduce"));
  // A result of the graph has no reader, whatever its shape.
  EXPECT_THAT(groups_of("graph(%x: bf16[4,4], %w: bf16[4,4]) { %d = dot(%x, %w) " + kDot +
                        " %c = cast(%d) {to = f32} %r = reshape(%c) {shape = [2,8]} return \"y\" = %r }"),
              ElementsAre("contraction: dot cast"));
}

// The gradient of a squared ReLU is a product with a function of what the forward pass stored; the activation is
// computed again beside it.
TEST(Fusion, EpiloguesComputeResultsFromTheirOperandsAlone) {
  const auto text = [](const std::string& function, const std::string& activation, const std::string& results) {
    return "graph(%x: bf16[64,64], %w: bf16[64,64], %a: bf16[64,64]) { %d = dot(%x, %w) " + kDot + R"(
      %f = cast(%a) {to = f32}
      %t = )" +
           function + R"(
      %c = cast(%d) {to = f32}
      %m = mul(%c, %t)
      %g = cast(%m) {to = bf16}
      )" + activation +
           " return \"g\" = %g" + results + " }";
  };
  const auto groups = [](const std::string& text) { return groups_of(text, {}, Target::cuda_h200()); };
  const std::string again = "%q = mul(%t, %t) %h = cast(%q) {to = bf16}";
  EXPECT_THAT(groups(text("abs(%f)", again, ", \"h\" = %h")),
              ElementsAre("contraction: dot cast abs cast mul cast mul cast"));
  EXPECT_THAT(groups(text("abs(%f)", "", "")), ElementsAre("contraction: dot cast abs cast mul cast"));
  // What the product itself reads is computed before it.
  EXPECT_THAT(
      groups("graph(%w: f32[64,64], %a: bf16[64,64]) { %f = cast(%a) {to = f32} %q = mul(%f, %f) %d = dot(%q, %w) " +
             kDot + " %m = mul(%d, %f) %g = cast(%m) {to = bf16} return \"g\" = %g }"),
      ElementsAre("stitch: cast mul", "contraction: dot mul cast"));
  // Stored in 32 bits it is a kernel of its own; so are functions that take long.
  const auto has_stitch = ::testing::Contains(::testing::StartsWith("stitch"));
  EXPECT_THAT(groups(text("abs(%f)", "", ", \"t\" = %t")), has_stitch);
  EXPECT_THAT(groups(text("tanh(%f)", again, ", \"h\" = %h")), has_stitch);
}

// The gradient of an activation has cheap and expensive parts. If an epilogue took only the cheap ones, more values
// would have to be stored for the others.
TEST(Fusion, EpiloguesLeaveWhatWouldReadOperandsThatAreStoredForIt) {
  const std::string text = "graph(%x: f32[64,64], %w: f32[64,64], %a: f32[64,64]) { %d = dot(%x, %w) " + kDot + R"(
      %one = constant {value = f32[64,64]{1}}
      %half = constant {value = f32[64,64]{0.5}}
      %h = mul(%a, %half)
      %t = tanh(%a)
      %u = add(%t, %one)
      %act = mul(%h, %u)
      %m = mul(%d, %h)
      %n = mul(%d, %u)
      %tt = mul(%t, %t)
      %slope = sub(%one, %tt)
      %p = mul(%m, %slope)
      %g = add(%p, %n)
      return "act" = %act, "g" = %g })";
  EXPECT_THAT(groups_of(text, {}, Target::cuda_h200()),
              ElementsAre("contraction: dot", "stitch: mul tanh add mul mul mul mul sub mul add"));
  EXPECT_THAT(groups_of("graph(%x: f32[64,64], %w: f32[64,64]) { %d = dot(%x, %w) " + kDot +
                            " %e = erf(%d) %u = add(%e, %d) %h = mul(%d, %u) return \"d\" = %d, \"h\" = %h }",
                        {}, Target::cuda_h200()),
              ElementsAre("contraction: dot erf add mul"));
}

TEST(Fusion, ValuesReadElsewhereBecomeFurtherOutputs) {
  const std::string text = "graph(%x: f32[4,4], %w: f32[4,4]) { %d = dot(%x, %w) " + kDot +
                           " %a = neg(%d) %b = exp(%a) return \"raw\" = %d, \"a\" = %a, \"b\" = %b }";
  const ir::Graph graph = ir::parse(text);
  const ir::Grouping grouping = fuse_checked(graph);
  ASSERT_EQ(grouping.groups.size(), 1u);
  EXPECT_EQ(grouping.groups[0].outputs.size(), 3u);
}

TEST(Fusion, WhatCannotBeCompiledRunsByReferenceAndSaysSo) {
  const std::string text = "graph(%x: f32[4]) { %a = neg(%x) %e = exp(%a) %b = neg(%e) return \"y\" = %b }";
  FusionOptions options;
  options.can_compile = [](const ir::Node& node, std::string* reason) {
    if (node.op == ir::Op::kExp) *reason = "no exponential here";
    return node.op != ir::Op::kExp;
  };
  const ir::Graph graph = ir::parse(text);
  const ir::Grouping grouping = fuse_checked(graph, options);
  EXPECT_THAT(summary(graph, grouping), ElementsAre("stitch: neg", "reference: exp", "stitch: neg"));
  EXPECT_EQ(grouping.decisions.at(0).reason, "no exponential here");
}

// They have kernels of their own, which the schedule puts between those of the region.
TEST(Fusion, ScattersAndSelectionsAreCompiledInTheirRegion) {
  EXPECT_THAT(
      groups_of("graph(%x: f32[4,8]) { %e = exp(%x) %v, %i = topk(%e) {k = 2, dim = 1, largest = 1, sorted = 1} "
                "%n = neg(%v) return \"y\" = %n, \"at\" = %i }"),
      ElementsAre("stitch: exp topk neg"));
  EXPECT_THAT(groups_of("graph(%x: f32[4,8], %at: i64[3,1], %u: f32[3,8]) { %e = exp(%u) %s = scatter_nd(%x, %at, %e) "
                        "{reduction = \"add\"} %n = neg(%s) return \"y\" = %n }"),
              ElementsAre("stitch: exp scatter_nd neg"));
}

// An image is turned once, so that vectors of its channels are gathered, and so is the result.
TEST(Fusion, ImagesOfGatheredRowsAreTurnedApart) {
  const auto groups = [](int64_t channels, const Target& target) {
    const ir::Graph graph = ir::parse(fmt::format(R"(graph(%x: f32[1,{0},32,32], %i: i64[2000,4], %j: i64[2000,4]) {{
      %t = transpose(%x) {{perm = [0,2,3,1]}}
      %r = reshape(%t) {{shape = [1024,{0}]}}
      %a = gather(%r, %i) {{dim = 0}}
      %b = gather(%r, %j) {{dim = 0}}
      %c = add(%a, %b)
      %s = reduce(%c) {{kind = "sum", dims = [1]}}
      %y = transpose(%s) {{perm = [1,0]}}
      return "y" = %y
    }})",
                                                  channels));
    return summary(graph, fuse(graph, target, {}));
  };
  EXPECT_THAT(groups(64, test_target()),
              ElementsAre("stitch: transpose", "stitch: gather gather add reduce", "stitch: transpose"));
  EXPECT_THAT(groups(3, test_target()), ElementsAre("stitch: transpose gather gather add reduce transpose"));
  EXPECT_EQ(groups(64, Target::cuda_h200()).size(), 1u) << "lanes of a GPU gather by themselves";
}

TEST(Fusion, DecisionsNameTheModelsNodes) {
  const std::string text = "graph(%x: f32[4,4], %w: f32[4,4]) { %d = dot(%x, %w) " + kDot +
                           " @\"/enc/MatMul:MatMul\" %y = neg(%d) @\"/enc/Neg:Neg\" return \"y\" = %y }";
  const ir::Graph graph = ir::parse(text);
  const ir::Grouping grouping = fuse_checked(graph);
  ASSERT_EQ(grouping.decisions.size(), 1u);
  EXPECT_TRUE(grouping.decisions[0].yes);
  EXPECT_EQ(grouping.decisions[0].rule, "epilogue");
  EXPECT_EQ(grouping.decisions[0].what, "neg (/enc/Neg) into dot (/enc/MatMul)");
}

TEST(Fusion, DeepChainsAreFast) {
  std::string text = "graph(%v0: f32[4,4], %w: f32[4,4]) {\n";
  constexpr int kSteps = 3000;
  for (int i = 0; i < kSteps; ++i) {
    const std::string from = "%v" + std::to_string(i), to = "%v" + std::to_string(i + 1);
    text += i % 10 == 9 ? to + " = dot(" + from + ", %w) " + kDot + "\n" : to + " = exp(" + from + ")\n";
  }
  text += "return \"y\" = %v" + std::to_string(kSteps) + " }";
  EXPECT_EQ(groups_of(text).size(), static_cast<size_t>(kSteps / 10 + 1));
}

// If a stitch group contained the reshape, it would store the value a second time for the product.
TEST(Fusion, AReshapeThatSeveralGroupsReadStaysAView) {
  const ir::Graph graph = ir::parse("graph(%x: f16[64,32], %w: f16[32,96], %v: f16[32,48]) {%d = dot(%x, %w) " + kDot +
                                    R"(
      %r = reshape(%d) {shape = [64,3,32]}
      %a = slice(%r) {starts = [0,0,0], limits = [64,1,32], strides = [1,1,1]}
      %e = exp(%a)
      %b = slice(%r) {starts = [0,1,0], limits = [64,2,32], strides = [1,1,1]}
      %m = reshape(%b) {shape = [64,32]}
      %p = dot(%m, %v) )" + kDot + R"(
      return "d" = %d, "e" = %e, "p" = %p
    })");
  const ir::Grouping grouping = fuse_checked(graph);
  const auto view = std::find_if(grouping.groups.begin(), grouping.groups.end(), [&](const ir::Group& group) {
    return group.nodes.size() == 1 && graph.node(group.nodes[0]).op == ir::Op::kReshape;
  });
  EXPECT_NE(view, grouping.groups.end());
}

}  // namespace
}  // namespace heddle::passes
