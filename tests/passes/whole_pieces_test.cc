// Pixels and rows of whole 16 bytes.
#include <fmt/format.h>

#include "pass_test_util.h"

namespace heddle::passes {
namespace {

ir::Graph widened(const ir::Graph& graph) {
  const Target target = Target::cuda_h200();
  const std::vector<std::string> names = {"space_to_depth", "canonicalize", "fold"};
  return run_passes(graph, names, {target, Precision::kF16});
}

const ir::Node* convolution(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == ir::Op::kConv) return &node;
  }
  return nullptr;
}

std::string conv_of(const std::string& x, const std::string& w, int stride, int low, int high, int dilation = 1) {
  return fmt::format(
      "graph(%x: {}) {{ %w = constant {{value = {}{{1}}}}\n %y = conv(%x, %w) {{strides = [{},{}], low = [{},{}], high "
      "= "
      "[{},{}], dilations = [{},{}], lhs_dilations = [1,1], groups = 1, layout = \"nhwc\"}}\n return \"y\" = %y }}",
      x, w, stride, stride, low, low, high, high, dilation, dilation);
}

struct Case {
  const char *x, *w;
  int stride, low, high, dilation;
  int64_t channels, window;  // afterwards; 0: stays as it is
};

TEST(SpaceToDepth, ComputeTheSame) {
  const Case cases[] = {
      {"f16[2,15,14,3]", "f16[5,3,7,7]", 2, 3, 3, 1, 16, 4},  // the first layer of a ResNet
      {"u8[2,15,14,3]", "i8[5,3,7,7]", 2, 3, 3, 1, 32, 4},    // the same of bytes
      {"i8[1,12,13,24]", "i8[4,24,3,3]", 1, 1, 1, 1, 32, 3},
      {"f16[1,12,13,3]", "f16[4,3,3,3]", 2, 1, 1, 1, 16, 2},      // an odd size
      {"f16[1,12,14,3]", "f16[4,3,3,3]", 2, 0, 1, 1, 16, 2},      // padding on one side
      {"f16[1,12,14,3]", "f16[4,3,3,3]", 2, 0, 0, 1, 16, 2},      // a line that no window reads
      {"f16[2,9,11,3]", "f16[4,3,3,3]", 1, 1, 1, 1, 16, 3},       // no stride: zero channels, runs begin with sectors
      {"bf16[1,9,8,4]", "bf16[6,4,3,3]", 1, 0, 0, 2, 16, 3},      // dilated
      {"f16[2,32,48,3]", "f16[7,3,16,16]", 16, 0, 0, 1, 768, 1},  // patches
      {"f16[1,11,9,5]", "f16[4,5,4,4]", 3, 2, 0, 1, 16, 4},
      {"f16[1,23,21,2]", "f16[4,2,11,11]", 4, 2, 2, 1, 32, 3},
      {"f16[1,11,12,3]", "f16[4,3,3,3]", 2, 1, -2, 1, 16, 2},  // cropped at the end
      {"f16[1,11,12,3]", "f16[4,3,3,3]", 2, -1, 1, 1, 0, 0},   // cropped at the beginning
      {"f16[1,9,9,1]", "f16[4,1,3,3]", 1, 1, 1, 1, 0, 0},      // one channel
      {"f16[1,9,9,8]", "f16[4,8,3,3]", 1, 1, 1, 1, 0, 0},      // whole pieces already
      {"f16[1,9,9,10]", "f16[4,10,5,5]", 1, 2, 2, 1, 16, 5},   // more than a piece
      {"f16[2,20,20,51]", "f16[6,51,5,5]", 5, 2, 2, 1, 1600, 1},
      {"f16[1,9,9,10]", "f16[4,10,1,1]", 1, 0, 0, 1, 0, 0},  // a product
      {"f32[1,9,9,3]", "f32[4,3,3,3]", 1, 1, 1, 1, 0, 0},    // threads multiply
  };
  for (const Case& c : cases) {
    const std::string text = conv_of(c.x, c.w, c.stride, c.low, c.high, c.dilation);
    SCOPED_TRACE(text);
    const ir::Graph before = ir::parse(text), after = widened(before);
    const ir::Node* conv = convolution(after);
    ASSERT_NE(conv, nullptr);
    const Shape& filters = after.shape(conv->inputs[1]);
    if (c.channels == 0) {
      EXPECT_EQ(filters, before.shape(convolution(before)->inputs[1]));
    } else {
      EXPECT_EQ(filters[1], c.channels);
      EXPECT_EQ(filters.back(), c.window);
      EXPECT_NE(after.constant_of(conv->inputs[1]), nullptr) << "filters are made at compile time";
    }
    expect_same(before, after, 2e-3);
  }
}

TEST(SpaceToDepth, SequencesAndVolumes) {
  const char* texts[] = {
      R"(graph(%x: f16[2,50,3]) { %w = constant {value = f16[7,3,5]{1}}
        %y = conv(%x, %w) {strides = [2], low = [2], high = [2], dilations = [1], lhs_dilations = [1], groups = 1, layout = "nhwc"}
        return "y" = %y })",
      R"(graph(%x: f16[1,5,6,8,3]) { %w = constant {value = f16[4,3,3,2,4]{1}}
        %y = conv(%x, %w) {strides = [1,2,2], low = [1,0,1], high = [1,0,1], dilations = [1,1,1], lhs_dilations = [1,1,1], groups = 1, layout = "nhwc"}
        return "y" = %y })"};
  for (const char* text : texts) {
    const ir::Graph before = ir::parse(text), after = widened(before);
    EXPECT_GT(after.shape(convolution(after)->inputs[1])[1], 3);
    expect_same(before, after, 2e-3);
  }
}

TEST(SpaceToDepth, OnlyForTensorCoresOfAGpu) {
  const ir::Graph before = ir::parse(conv_of("f16[2,15,14,3]", "f16[5,3,7,7]", 2, 3, 3));
  const std::vector<std::string> names = {"space_to_depth"};
  EXPECT_EQ(ir::print(run_passes(before, names, {test_target(), Precision::kF16})), ir::print(before));
}

// A matrix of 16.8 MB whose rows are no whole pieces of 16 bytes, as an operand of `products` products.
ir::Graph products_of(const std::string& matrix, int products) {
  std::string text = "graph(%x: f32[1026,4099], %w: f32[4099,3], %h: f32[1026,2]) {\n" + matrix;
  text += "%a = dot(%m, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}\n";
  text += "%t = transpose(%m) {perm = [1,0]}\n";
  text += "%b = dot(%t, %h) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}\n";
  const ir::Graph graph = ir::parse(text + "return \"a\" = %a" + (products > 1 ? ", \"b\" = %b }" : " }"));
  return run_passes(graph, std::vector<std::string>{"dce"}, {Target::cuda_h200()});
}

ir::Graph aligned(const ir::Graph& graph) {
  return run_passes(graph, std::vector<std::string>{"align_rows", "dce"}, {Target::cuda_h200()});
}

int64_t operations(const ir::Graph& graph, ir::Op op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) { return node.op == op; });
}

TEST(AlignRows, AnOperandOfTwoProductsIsCopiedOnce) {
  const ir::Graph before = products_of("%m = neg(%x)\n", 2), after = aligned(before);
  EXPECT_EQ(operations(after, Op::kPad), 1);
  EXPECT_EQ(operations(after, Op::kSlice), 2);
  expect_same(before, after);
}

TEST(AlignRows, TheKernelThatMakesAnOperandWritesAlignedRows) {
  EXPECT_EQ(operations(aligned(products_of("%m = neg(%x)\n", 1)), Op::kPad), 1);
}

TEST(AlignRows, OtherOperandsStay) {
  EXPECT_EQ(operations(aligned(products_of("%m = reshape(%x) {shape = [1026,4099]}\n", 1)), Op::kPad), 0)
      << "the only product copies an input itself";
  EXPECT_EQ(operations(aligned(products_of("%e = exp(%x)\n %m = div(%e, %x)\n", 1)), Op::kPad), 0)
      << "attention may be found there";
}

}  // namespace
}  // namespace heddle::passes
