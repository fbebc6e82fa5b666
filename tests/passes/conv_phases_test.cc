#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <random>

#include "pass_test_util.h"

namespace heddle::passes {
namespace {

using ir::Ints;

struct Spread {
  std::string type = "f32";
  int64_t batch = 1, groups = 1, channels = 3, features = 2;  // of a group
  Ints in = {}, kernel = {}, low = {}, high = {}, spread = {}, dilations = {}, strides = {};
  bool constant = true;  // filters

  std::string text() const {
    const Ints w = joined({groups * features, channels}, kernel), x = joined(joined({batch}, in), {groups * channels});
    const std::string filters = fmt::format("{}[{}]", type, fmt::join(w, ","));
    return fmt::format(
        "graph(%x: {}[{}]{}) {{ {}\n %y = conv(%x, %w) {{strides = [{}], low = [{}], high = [{}], dilations = [{}], "
        "lhs_dilations = [{}], groups = {}, layout = \"nhwc\"}}\n return \"y\" = %y }}",
        type, fmt::join(x, ","), constant ? "" : ", %w: " + filters,
        constant ? "%w = constant {value = " + filters + "{1}}" : "", fmt::join(strides, ","), fmt::join(low, ","),
        fmt::join(high, ","), fmt::join(dilations, ","), fmt::join(spread, ","), groups);
  }

 private:
  static Ints joined(Ints a, const Ints& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
};

// One spatial dimension more: a transposed convolution with `pad` zeros of padding and `more` results at the end.
Spread with_dimension(Spread s, int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t more = 0,
                      int64_t dilation = 1) {
  const int64_t span = (kernel - 1) * dilation;
  s.in.push_back(in), s.kernel.push_back(kernel), s.spread.push_back(stride), s.dilations.push_back(dilation);
  s.strides.push_back(1), s.low.push_back(span - pad), s.high.push_back(span - pad + more);
  return s;
}

std::vector<const ir::Node*> nodes_with(const ir::Graph& graph, ir::Op op) {
  std::vector<const ir::Node*> found;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == op) found.push_back(&node);
  }
  return found;
}

ir::Graph without_spread(const ir::Graph& graph, const Target& target = test_target()) {
  const std::vector<std::string> names = {"conv_phases", "canonicalize", "fold", "canonicalize", "dce"};
  return run_passes(graph, names, {target});
}

bool is_spread(const ir::Graph& graph) {
  const auto convs = nodes_with(graph, ir::Op::kConv);
  return std::any_of(convs.begin(), convs.end(), [](const ir::Node* node) {
    const Ints& spreads = node->attrs.ints("lhs_dilations");
    return std::any_of(spreads.begin(), spreads.end(), [](int64_t s) { return s != 1; });
  });
}

Spread random_spread(std::mt19937& random) {
  const auto pick = [&](const Ints& from) { return from[random() % from.size()]; };
  Spread s;
  const char* types[] = {"f32", "f32", "f16", "bf16", "f64", "i32", "i8"};
  s.type = types[random() % 7];
  s.batch = pick({1, 2, 3}), s.groups = pick({1, 1, 2, 3}), s.channels = pick({1, 2, 5}), s.features = pick({1, 2, 3});
  s.constant = random() % 2 == 0;
  const size_t rank = 1 + random() % 3;
  for (size_t d = 0; d < rank; ++d) {
    const bool large = rank == 1 && random() % 4 == 0;
    const int64_t kernel = large ? pick({15, 16, 17}) : pick({1, 2, 3, 4, 5}), dilation = pick({1, 1, 1, 2, 3});
    const int64_t span = (kernel - 1) * dilation + 1, spread = large ? pick({8, 16}) : pick({1, 2, 2, 3, 4});
    const int64_t in = pick({1, 2, 5}), spanned = (in - 1) * spread + 1;
    s.in.push_back(in), s.kernel.push_back(kernel), s.spread.push_back(spread), s.dilations.push_back(dilation);
    s.strides.push_back(pick({1, 1, 1, 1, 2, 3}));
    s.low.push_back(span - 1 - pick({-2, 0, 0, 0, 1, 2}));
    s.high.push_back(std::max(span - 1 - pick({-1, 0, 0, 0, 1, 3}), span - spanned - s.low.back()));
  }
  return s;
}

TEST(ConvPhases, ComputeTheSame) {
  std::mt19937 random(7);
  const Target targets[] = {test_target(), Target::cuda_h200()};
  for (int i = 0; i < 400; ++i) {
    const std::string text = random_spread(random).text();
    SCOPED_TRACE(text);
    const ir::Graph before = ir::parse(text), after = without_spread(before, targets[i % 2]);
    EXPECT_FALSE(is_spread(after));
    ASSERT_NO_FATAL_FAILURE(expect_same(before, after, before.dtype(0) == DType::kF32 ? 1e-5 : 1e-2));
  }
}

// The only convolution after the pass.
const ir::Node& one_convolution(const ir::Graph& graph) {
  const auto convs = nodes_with(graph, ir::Op::kConv);
  EXPECT_EQ(convs.size(), 1u);
  return *convs.at(0);
}

TEST(ConvPhases, FiltersThatMeetNoNeighbourMakeOneProduct) {
  const Spread patches = with_dimension(with_dimension({.channels = 8, .features = 4}, 5, 2, 2, 0), 6, 2, 2, 0);
  const ir::Graph graph = without_spread(ir::parse(patches.text()));
  const ir::Node& conv = one_convolution(graph);
  EXPECT_EQ(graph.shape(conv.inputs[1]), (Shape{16, 8, 1, 1}));
  EXPECT_EQ(graph.shape(conv.outputs[0]), (Shape{1, 5, 6, 16}));
  EXPECT_NE(graph.constant_of(conv.inputs[1]), nullptr) << "filters are made at compile time";
  EXPECT_TRUE(nodes_with(graph, ir::Op::kSlice).empty());
}

TEST(ConvPhases, PhasesBeginWhereTheyHaveEquallyManyTaps) {
  for (const auto& [kernel, stride, pad] : {std::array{4, 2, 1}, {16, 8, 4}, {8, 2, 3}, {9, 3, 3}}) {
    const Spread s = with_dimension({.channels = 8, .features = 4}, 9, kernel, stride, pad);
    const ir::Graph graph = without_spread(ir::parse(s.text()), Target::cuda_h200());
    EXPECT_EQ(graph.shape(one_convolution(graph).inputs[1]), (Shape{4 * stride, 8, kernel / stride}));
  }
}

TEST(ConvPhases, UnequalPhasesAreApartWhereZerosWouldCostMore) {
  const auto convolutions = [](int64_t size, bool constant, const Target& target) {
    const Spread filters = {.channels = 64, .features = 64, .constant = constant};
    const Spread s = with_dimension(with_dimension(filters, size, 3, 2, 1), size, 3, 2, 1);
    return nodes_with(without_spread(ir::parse(s.text()), target), ir::Op::kConv).size();
  };
  const Target cpu = test_target();
  EXPECT_EQ(convolutions(32, false, cpu), 4u);
  EXPECT_EQ(convolutions(2, false, cpu), 1u) << "kernels cost more than zeros";
  EXPECT_EQ(convolutions(32, true, cpu), 1u) << "kernels leave out zeros that they know";
  EXPECT_EQ(convolutions(32, true, Target::cuda_h200()), convolutions(32, false, Target::cuda_h200()));
}

TEST(ConvPhases, PhasesWithoutTapsAreZeros) {
  const Spread filters = {.type = "bf16", .batch = 64, .channels = 512, .features = 256};
  const Spread s = with_dimension(with_dimension(filters, 28, 1, 2, 0), 28, 1, 2, 0);
  const ir::Graph graph = without_spread(ir::parse(s.text()), Target::cuda_h200());
  EXPECT_EQ(graph.shape(one_convolution(graph).inputs[1]), (Shape{256, 512, 1, 1}));
}

TEST(ConvPhases, DepthwiseConvolutionsStayDepthwise) {
  const Spread s = with_dimension({.groups = 32, .channels = 1, .features = 1}, 20, 4, 2, 1);
  const ir::Graph graph = without_spread(ir::parse(s.text()));
  const auto convs = nodes_with(graph, ir::Op::kConv);
  ASSERT_EQ(convs.size(), 2u);
  for (const ir::Node* conv : convs) EXPECT_EQ(graph.shape(conv->inputs[1]), (Shape{32, 1, 2}));
}

// Phases of rows stand before the channels, those of pixels behind them.
TEST(ConvPhases, PixelPhasesAreNeighboursWhereChannelsComeFirst) {
  const Spread s =
      with_dimension(with_dimension({.groups = 32, .channels = 1, .features = 1}, 20, 4, 2, 1), 20, 4, 2, 1);
  std::string text = s.text();
  text.replace(text.find("return"), std::string::npos, "%t = transpose(%y) {perm = [0,3,1,2]}\n return \"z\" = %t }");
  const ir::Graph before = ir::parse(text), after = without_spread(before);
  const ir::Node& conv = one_convolution(after);
  EXPECT_EQ(after.shape(conv.inputs[1]), (Shape{32 * 4, 1, 2, 2})) << "depthwise ones are dense there, too";
  expect_same(before, after, 1e-5);
}

TEST(ConvPhases, DepthwiseConvolutionsOfManyPhasesBecomeOne) {
  const Spread s =
      with_dimension(with_dimension({.groups = 3, .channels = 1, .features = 1}, 5, 16, 8, 4), 4, 16, 8, 4);
  const ir::Graph before = ir::parse(s.text()), after = without_spread(before);
  EXPECT_EQ(after.shape(one_convolution(after).inputs[1]), (Shape{3 * 64, 1, 2, 2}));
  expect_same(before, after, 1e-5);
}

TEST(ConvPhases, SpreadsOfManyPhasesWithoutACommonWindowStay) {
  const Spread s = with_dimension({}, 3, 2, 64, 0, 0, 3);
  const ir::Graph before = ir::parse(s.text());
  EXPECT_TRUE(is_spread(without_spread(before)));
}

}  // namespace
}  // namespace heddle::passes
