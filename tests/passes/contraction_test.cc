#include <algorithm>

#include "pass_test_util.h"

namespace heddle::passes {
namespace {

const std::vector<std::string> kPrepare = {"canonicalize", "fold", "canonicalize", "cse"};

TEST(FoldBatchNorm, DisappearsIntoWeightsAndOneBias) {
  const std::string_view text = R"(graph(%x: f32[1,2,3,3]) {
      %w = constant {value = f32[3,2,1,1]{1, 2, 3, 4, 5, 6}}
      %b = constant {value = f32[3]{1, 2, 3}}
      %s = constant {value = f32[3]{2, 3, 4}}
      %t = constant {value = f32[3]{10, 20, 30}}
      %two = constant {value = f32[]{2}}
      %c = conv(%x, %w) {strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"}
      %bb = broadcast(%b) {shape = [1,3,3,3], dims = [1]}
      %1 = add(%c, %bb)
      %sb = broadcast(%s) {shape = [1,3,3,3], dims = [1]}
      %2 = mul(%1, %sb)
      %tb = broadcast(%t) {shape = [1,3,3,3], dims = [1]}
      %3 = add(%2, %tb)
      %twob = broadcast(%two) {shape = [1,3,3,3], dims = []}
      %4 = mul(%3, %twob)
      return "y" = %4
    })";
  expect_ir(text, {"fold_batch_norm"}, R"(graph(%x: f32[1,2,3,3]) {
      %w = constant {value = f32[3,2,1,1]{4, 8, 18, 24, 40, 48}}
      %c = conv(%x, %w) {strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"}
      %b = constant {value = f32[3]{24, 52, 84}}
      %bb = broadcast(%b) {shape = [1,3,3,3], dims = [1]}
      %1 = add(%c, %bb)
      return "y" = %1
    })");
}

TEST(FoldBatchNorm, ScalesInFrontGoIntoInputChannels) {
  const std::string_view text = R"(graph(%x: f32[2,3]) {
      %s = constant {value = f32[3]{2, 3, 4}}
      %sb = broadcast(%s) {shape = [2,3], dims = [1]}
      %1 = mul(%x, %sb)
      %w = constant {value = f32[2,3]{1, 2, 3, 4, 5, 6}}
      %2 = dot(%1, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}
      return "y" = %2
    })";
  expect_ir(text, {"fold_batch_norm"}, R"(graph(%x: f32[2,3]) {
      %w = constant {value = f32[2,3]{2, 6, 12, 8, 15, 24}}
      %2 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}
      return "y" = %2
    })");
}

TEST(FoldBatchNorm, ReachesWeightsOfSixteenBitsThroughACast) {
  const std::string_view text = R"(graph(%x: f16[2,3]) {
      %w = constant {value = f16[3,2]{1, 2, 3, 4, 5, 6}}
      %1 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
      %2 = cast(%1) {to = f32}
      %t = constant {value = f32[2]{10, 20}}
      %tb = broadcast(%t) {shape = [2,2], dims = [1]}
      %3 = add(%2, %tb)
      %s = constant {value = f32[2]{2, 3}}
      %sb = broadcast(%s) {shape = [2,2], dims = [1]}
      %4 = mul(%3, %sb)
      return "y" = %4
    })";
  expect_ir(text, {"fold_batch_norm"}, R"(graph(%x: f16[2,3]) {
      %w = constant {value = f16[3,2]{2, 6, 6, 12, 10, 18}}
      %1 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
      %2 = cast(%1) {to = f32}
      %t = constant {value = f32[2]{20, 60}}
      %tb = broadcast(%t) {shape = [2,2], dims = [1]}
      %3 = add(%2, %tb)
      return "y" = %3
    })");
}

TEST(FoldBatchNorm, WeightsThatTheirTypeHasNoNormalNumbersForStay) {
  for (const char* factors : {"1e5, 1", "1e-6, 2e-6"}) {
    const std::string text = fmt::format(R"(graph(%x: f16[2,3]) {{
      %w = constant {{value = f16[3,2]{{1, 2, 3, 4, 5, 6}}}}
      %1 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}
      %2 = cast(%1) {{to = f32}}
      %s = constant {{value = f32[2]{{{}}}}}
      %sb = broadcast(%s) {{shape = [2,2], dims = [1]}}
      %3 = mul(%2, %sb)
      return "y" = %3
    }})",
                                         factors);
    expect_ir(text, {"fold_batch_norm"}, text);
  }
}

TEST(FoldBatchNorm, AConvolutionReadTwiceStays) {
  const std::string_view text = R"(graph(%x: f32[2,3]) {
      %w = constant {value = f32[3,2]{1, 2, 3, 4, 5, 6}}
      %1 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
      %s = constant {value = f32[2]{2, 3}}
      %sb = broadcast(%s) {shape = [2,2], dims = [1]}
      %2 = mul(%1, %sb)
      return "raw" = %1, "scaled" = %2
    })";
  expect_ir(text, {"fold_batch_norm"}, text);
}

TEST(FoldBatchNorm, ADotWithTwoFreeWeightDimensionsStays) {
  const std::string_view text = R"(graph(%x: f32[2,3]) {
      %w = constant {value = f32[3,2,2]{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}
      %1 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
      %s = constant {value = f32[2]{2, 3}}
      %sb = broadcast(%s) {shape = [2,2,2], dims = [2]}
      %2 = mul(%1, %sb)
      return "y" = %2
    })";
  expect_ir(text, {"fold_batch_norm"}, text);
}

TEST(Unshare, EachReaderHasItsOwnBroadcast) {
  expect_ir(R"(graph(%x: f32[4], %y: f32[2,4]) {
      %b = broadcast(%x) {shape = [2,4], dims = [1]}
      %1 = mul(%b, %b)
      %2 = add(%y, %b)
      return "p" = %1, "q" = %2
    })",
            {"clone_cheap_producers"}, R"(graph(%x: f32[4], %y: f32[2,4]) {
      %b = broadcast(%x) {shape = [2,4], dims = [1]}
      %1 = mul(%b, %b)
      %c = broadcast(%x) {shape = [2,4], dims = [1]}
      %2 = add(%y, %c)
      return "p" = %1, "q" = %2
    })");
}

TEST(Unshare, SlicesOfSlicesShareNoView) {
  expect_ir(R"(graph(%x: f16[4,12]) {
      %h = slice(%x) {starts = [0,0], limits = [4,8], strides = [1,1]}
      %r = reshape(%h) {shape = [4,2,4]}
      %p = slice(%r) {starts = [0,0,0], limits = [4,1,4], strides = [1,1,1]}
      %q = slice(%r) {starts = [0,1,0], limits = [4,2,4], strides = [1,1,1]}
      return "p" = %p, "q" = %q
    })",
            {"clone_cheap_producers"}, R"(graph(%x: f16[4,12]) {
      %h0 = slice(%x) {starts = [0,0], limits = [4,8], strides = [1,1]}
      %r0 = reshape(%h0) {shape = [4,2,4]}
      %p = slice(%r0) {starts = [0,0,0], limits = [4,1,4], strides = [1,1,1]}
      %h1 = slice(%x) {starts = [0,0], limits = [4,8], strides = [1,1]}
      %r1 = reshape(%h1) {shape = [4,2,4]}
      %q = slice(%r1) {starts = [0,1,0], limits = [4,2,4], strides = [1,1,1]}
      return "p" = %p, "q" = %q
    })");
}

TEST(MergeDots, QueriesKeysAndValuesAreOneProduct) {
  const ir::Graph graph = ir::parse(R"(graph(%x: f32[2,5,16]) {
      %wq = constant {value = f32[16,8]{1}}
      %wk = constant {value = f32[16,16]{1}}
      %wv = constant {value = f32[16,8]{1}}
      %bq = constant {value = f32[8]{1}}
      %half = constant {value = f32[]{0.5}}
      %0 = dot(%x, %wq) {lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]}
      %1 = broadcast(%bq) {shape = [2,5,8], dims = [2]}
      %2 = add(%0, %1)
      %3 = broadcast(%half) {shape = [2,5,8], dims = []}
      %4 = mul(%2, %3)
      %5 = reshape(%4) {shape = [2,5,2,4]}
      %6 = dot(%x, %wk) {lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]}
      %7 = reshape(%6) {shape = [2,5,4,4]}
      %8 = dot(%x, %wv) {lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]}
      %9 = exp(%8)
      return "q" = %5, "k" = %7, "v" = %9
    })");
  const Target gpu = Target::cuda_h200();
  const ir::Graph merged = run_passes(graph, std::vector<std::string>{"merge_dots"}, PassContext{gpu});
  const auto products = std::count_if(merged.nodes().begin(), merged.nodes().end(),
                                      [](const ir::Node& node) { return node.op == ir::Op::kDot; });
  EXPECT_EQ(products, 2) << "exp would be a kernel of its own behind a slice\n" << ir::print(merged);
  expect_same(graph, merged);
  const Target cpu = Target::host_cpu(1);
  const ir::Graph same = run_passes(graph, std::vector<std::string>{"merge_dots"}, PassContext{cpu});
  EXPECT_EQ(ir::print(same), ir::print(graph));
}

// As models in f16 have them. The factor stays: weights times a factor would be rounded again.
TEST(MergeDots, ProductsOf16BitsAreOne) {
  for (const std::string type : {"f16", "bf16"}) {
    const std::string attributes = " {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}\n";
    const auto constant = [&](const char* name, const char* shape, const char* value) {
      return "%" + std::string(name) + " = constant {value = " + type + shape + "{" + value + "}}\n";
    };
    const ir::Graph graph = ir::parse(
        "graph(%x: " + type + "[5,16]) {\n" + constant("wq", "[8,16]", "0.5") + constant("wk", "[16,16]", "2") +
        constant("wv", "[8,16]", "1") + constant("bk", "[16]", "3") + constant("bv", "[]", "0.25") +
        constant("third", "[]", "0.3333") + "%0 = dot(%x, %wq)" + attributes +
        "%1 = broadcast(%third) {shape = [5,8], dims = []}\n%3 = mul(%0, %1)\n%2 = reshape(%3) {shape = [5,2,4]}\n"
        "%4 = dot(%x, %wk)" +
        attributes +
        "%5 = broadcast(%bk) {shape = [5,16], dims = [1]}\n%6 = add(%4, %5)\n%7 = reshape(%6) {shape = [5,4,4]}\n"
        "%8 = dot(%x, %wv)" +
        attributes +
        "%9 = broadcast(%bv) {shape = [5,8], dims = []}\n%10 = add(%8, %9)\n%11 = transpose(%10) {perm = [1,0]}\n"
        "return \"q\" = %2, \"k\" = %7, \"v\" = %11\n}");
    const Target gpu = Target::cuda_h200();
    const ir::Graph merged = run_passes(graph, std::vector<std::string>{"merge_dots"}, PassContext{gpu});
    const auto products = std::count_if(merged.nodes().begin(), merged.nodes().end(),
                                        [](const ir::Node& node) { return node.op == ir::Op::kDot; });
    EXPECT_EQ(products, 1) << ir::print(merged);
    expect_same(graph, merged);
  }
}

// A step of time that each block of a diffusion model adds to its channels: biases of one row are constants as they
// are, and what is repeated for all pixels is read by other kernels.
TEST(MergeDots, ProductsThatAreRepeatedForPixelsAreOne) {
  const std::string attributes = " {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}\n";
  const auto graph_with = [&](const std::string& shape) {
    return ir::parse(
        "graph(%t: f32[1,16]) {\n"
        "%a = constant {value = f32[16,8]{0.5}}\n%b = constant {value = f32[16,16]{2}}\n"
        "%c = constant {value = f32[1,8]{3}}\n"
        "%0 = dot(%t, %a)" +
        attributes + "%1 = add(%0, %c)\n%2 = broadcast(%1) {shape = [1," + shape +
        ",8], dims = [0,2]}\n%5 = dot(%t, %b)" + attributes + "%6 = broadcast(%5) {shape = [1," + shape +
        ",16], dims = [0,2]}\n%7 = exp(%2)\n%8 = exp(%6)\nreturn \"x\" = %7, \"y\" = %8\n}");
  };
  const Target gpu = Target::cuda_h200();
  for (const bool repeats : {true, false}) {
    const ir::Graph graph = graph_with(repeats ? "3" : "1");
    const ir::Graph merged = run_passes(graph, std::vector<std::string>{"merge_dots"}, PassContext{gpu});
    const auto products = std::count_if(merged.nodes().begin(), merged.nodes().end(),
                                        [](const ir::Node& node) { return node.op == ir::Op::kDot; });
    EXPECT_EQ(products, repeats ? 1 : 2) << ir::print(merged);
    expect_same(graph, merged);
  }
}

// Queries that are normalised in f32, head by head, beside values that are not.
TEST(MergeDots, ProductsOfNormalisedHeadsAreOne) {
  const std::string attributes = " {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}\n";
  for (const bool normalises : {true, false}) {
    const ir::Graph graph = ir::parse(
        "graph(%x: f16[3,16]) {\n"
        "%a = constant {value = f16[16,8]{0.5}}\n%b = constant {value = f16[16,16]{2}}\n"
        "%0 = dot(%x, %a)" +
        attributes + "%1 = dot(%x, %b)" + attributes +
        "%2 = reshape(%1) {shape = [3,4,4]}\n%3 = cast(%0) {to = f32}\n%4 = mul(%3, %3)\n" +
        (normalises ? "%5 = reshape(%4) {shape = [3,2,4]}\n%6 = reduce(%5) {dims = [2], kind = \"sum\"}\n"
                      "%7 = reshape(%3) {shape = [3,2,4]}\n%8 = broadcast(%6) {shape = [3,2,4], dims = [0,1]}\n"
                      "%9 = mul(%7, %8)\n"
                    : "%9 = exp(%4)\n") +
        "return \"q\" = %9, \"v\" = %2\n}");
    const Target gpu = Target::cuda_h200();
    const ir::Graph merged = run_passes(graph, std::vector<std::string>{"merge_dots"}, PassContext{gpu});
    const auto products = std::count_if(merged.nodes().begin(), merged.nodes().end(),
                                        [](const ir::Node& node) { return node.op == ir::Op::kDot; });
    EXPECT_EQ(products, normalises ? 1 : 2) << ir::print(merged);
    expect_same(graph, merged);
  }
}

// No columns is a multiple of any number of columns, and the bias has no value to take.
TEST(MergeDots, ProductsOfNothingStay) {
  const std::string attributes = "{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}";
  const ir::Graph graph = ir::parse(
      "graph(%x: f32[2,16], %z: f32[2,0]) {"
      "%w = constant {value = f32[16,0]{}}\n"
      "%b = constant {value = f32[0]{}}\n"
      "%n = constant {value = f32[0,8]{}}\n"
      "%0 = dot(%x, %w) " +
      attributes +
      "\n"
      "%1 = broadcast(%b) {shape = [2,0], dims = [1]}\n"
      "%2 = add(%0, %1)\n"
      "%3 = reshape(%2) {shape = [0]}\n"
      "%4 = dot(%x, %w) " +
      attributes +
      "\n"
      "%5 = reshape(%4) {shape = [0,2]}\n"
      "%6 = dot(%z, %n) " +
      attributes +
      "\n"
      "%7 = reshape(%6) {shape = [16]}\n"
      "%8 = dot(%z, %n) " +
      attributes +
      "\n"
      "%9 = reshape(%8) {shape = [4,4]}\n"
      "return \"a\" = %3, \"b\" = %5, \"c\" = %7, \"d\" = %9\n"
      "}");
  const Target gpu = Target::cuda_h200();
  const ir::Graph same = run_passes(graph, std::vector<std::string>{"merge_dots"}, PassContext{gpu});
  EXPECT_EQ(ir::print(same), ir::print(graph));
  expect_same(graph, same);
}

// What small_dots makes of a product for a GPU, which computes the same.
ir::Graph without_small(const std::string& text, unsigned seed = 1) {
  const ir::Graph before = ir::parse(text);
  ir::Graph after = run_passes(before, std::vector<std::string>{"small_dots"}, {Target::cuda_h200(1)});
  expect_same(before, after, 1e-3, seed);
  return after;
}

bool keeps_dot(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const ir::Node& node) { return node.op == ir::Op::kDot; });
}

// One operand of a product, and the type of another, which is constant.
std::string product(const std::string& a, const std::string& b, const std::string& attrs, bool swapped = false) {
  const ir::TensorType type = ir::parse(fmt::format("graph(%b: {}) {{ return \"b\" = %b }}", b)).type(0);
  std::string values;
  for (int64_t i = 0; i < element_count(type.shape); ++i) values += fmt::format("{}{}", i > 0 ? ", " : "", i % 7 - 3);
  return fmt::format("graph(%a: {}) {{ %b = constant {{value = {}{{{}}}}} %y = dot({}) {{{}}} return \"y\" = %y }}", a,
                     b, values, swapped ? "%b, %a" : "%a, %b", attrs);
}

TEST(SmallDots, AreSumsOfProductsWhereverTheirDimensionsLie) {
  const std::string cases[] = {
      product("f16[100,4]", "f16[4,4]", "lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]"),
      product("f32[5,4,131]", "f32[4,7]", "lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [1]",
              true),
      product("bf16[3,4,67,2]", "bf16[4,3,5,2]",
              "lhs_batch = [0], rhs_batch = [1], lhs_contract = [3, 1], rhs_contract = [3, 0]"),
      product("f16[2,16,3,64]", "f16[2,16]",
              "lhs_batch = [0], rhs_batch = [0], lhs_contract = [1], rhs_contract = [1]"),
      product("f16[90,1]", "f16[1,16]",
              "lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], out = f32"),
  };
  for (const std::string& text : cases) EXPECT_FALSE(keeps_dot(without_small(text))) << text;
}

TEST(SmallDots, OthersStayProducts) {
  const std::string plain = "lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]";
  const std::string cases[] = {
      product("f16[100,17]", "f16[17,4]", plain),
      product("f16[100,4]", "f16[4,17]", plain),
      product("f16[60,4]", "f16[4,4]", plain),
      product("i8[100,4]", "i8[4,4]", plain),
      "graph(%a: f16[100,4], %b: f16[4,4]) { %y = dot(%a, %b) {" + plain + "} return \"y\" = %y }",
  };
  for (const std::string& text : cases) EXPECT_TRUE(keeps_dot(without_small(text))) << text;
}

// A dot and what reads it, after the pass; both compute the same.
ir::Graph swapped(const std::string& parameters, const std::string& body) {
  const std::string text = "graph(" + parameters + ") {" + body + "return \"y\" = %y }";
  ir::Graph after = run(text, {"swap_dots", "canonicalize"});
  expect_same(ir::parse(text), after);
  return after;
}

size_t transposes(const ir::Graph& graph) {
  return static_cast<size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                           [](const ir::Node& node) { return node.op == ir::Op::kTranspose; }));
}

TEST(SwapDots, TransposesOfProductsDisappear) {
  const std::string dot = "{lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [0]} ";
  const std::string batched = "{lhs_batch = [0], rhs_batch = [1], lhs_contract = [3], rhs_contract = [0]} ";
  const std::string two = "%x: f32[7,3], %w: f32[7,5]";
  EXPECT_EQ(transposes(swapped(two, "%d = dot(%x, %w) " + dot + "%y = transpose(%d) {perm = [1,0]} ")), 0u);
  // As gradients of 1x1 filters are written: through dimensions of extent 1 and a cast.
  EXPECT_EQ(transposes(swapped(two, "%d = dot(%x, %w) " + dot + R"(%r = reshape(%d) {shape = [3,1,5,1]}
      %c = cast(%r) {to = f64} %y = transpose(%c) {perm = [2,1,3,0]} )")),
            0u);
  // Several rows, batches and columns in any of them of extent 1.
  const std::string many = "%x: f32[2,3,1,7], %w: f32[7,2,5,4]";
  EXPECT_EQ(transposes(swapped(many, "%d = dot(%x, %w) " + batched + "%y = transpose(%d) {perm = [0,3,4,2,1]} ")), 0u);
}

TEST(SwapDots, OtherProductsKeepTheirOrder) {
  const std::string dot = "{lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [0]} ";
  const std::string two = "%x: f32[7,3,2], %w: f32[7,5]";
  const auto kept = [&](const std::string& body) { return transposes(swapped(two, body)); };
  // Rows that change places, a second reader, a constant.
  EXPECT_EQ(kept("%d = dot(%x, %w) " + dot + "%y = transpose(%d) {perm = [2,1,0]} "), 1u);
  EXPECT_EQ(kept("%d = dot(%x, %w) " + dot + R"(%t = transpose(%d) {perm = [2,0,1]} %r = reshape(%t) {shape = [3,2,5]}
      %y = add(%d, %r) )"),
            1u);
  EXPECT_EQ(kept("%k = constant {value = f32[7,5]{0.5}} %d = dot(%x, %k) " + dot + "%e = dot(%x, %w) " + dot +
                 "%t = transpose(%d) {perm = [2,0,1]} %u = transpose(%e) {perm = [2,0,1]} "
                 "%y = add(%t, %u) "),
            1u);
}

}  // namespace
}  // namespace heddle::passes
