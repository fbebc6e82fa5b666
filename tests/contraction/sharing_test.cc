// Deep kernels of different sizes are one kernel that is called with them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/codegen.h"
#include "schedule/product/contraction_builder.h"
#include "testing.h"
#include "tests/codegen/harness.h"

namespace heddle {
namespace {

using testing::check_graph;
using testing::parse_with_random_weights;

std::string product(int64_t m, int64_t n, int64_t k, bool transposed = false) {
  return fmt::format(R"(graph g(%x: f32[{0},{2}]) {{
    %w = constant {{value = f32[{3},{4}]{{1}}}}
    %b = constant {{value = f32[{1}]{{1}}}}
    %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [{5}]}} : f32[{0},{1}]
    %1 = broadcast(%b) {{shape = [{0},{1}], dims = [1]}} : f32[{0},{1}]
    %2 = add(%0, %1) : f32[{0},{1}]
    return "y" = %2
  }})",
                     m, n, k, transposed ? n : k, transposed ? k : n, transposed ? 1 : 0);
}

std::string convolution(const std::string& type, int64_t size, int64_t c, int64_t o, int64_t stride) {
  const int64_t out = (size + 2 - 3) / stride + 1;
  return fmt::format(R"(graph g(%x: {5}[2,{0},{0},{1}], %r: {5}[2,{3},{3},{2}]) {{
    %w = constant {{value = {5}[{2},{1},3,3]{{1}}}}
    %0 = conv(%x, %w) {{strides = [{4},{4}], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"}} : {5}[2,{3},{3},{2}]
    %1 = add(%0, %r) : {5}[2,{3},{3},{2}]
    return "y" = %1
  }})",
                     size, c, o, out, stride, type);
}

TEST(Sharing, DeepProblemsOfAwkwardSizes) {
  for (const CpuIsa isa : {CpuIsa::kAvx512, CpuIsa::kAvx2, CpuIsa::kPortable}) {
    SCOPED_TRACE(fmt::format("instruction set {}", static_cast<int>(isa)));
    const testing::RunOptions options{.isa = isa};
    for (const std::string& text :
         {product(53, 301, 259), product(31, 147, 300, true), product(1, 1031, 1025), product(290, 37, 257),
          convolution("f32", 17, 40, 49, 2), convolution("f16", 17, 33, 70, 2)}) {
      SCOPED_TRACE(text);
      check_graph(parse_with_random_weights(text, 3), 1e-3, options);
    }
  }
}

TEST(Sharing, DeepProductsOfOperandsThatAreCopied) {
  check_graph(parse_with_random_weights(R"(graph g(%x: f32[2,3,61,270], %y: f32[2,3,43,270]) {
    %0 = dot(%x, %y) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [3]} : f32[2,3,61,43]
    return "y" = %0
  })",
                                        3),
              1e-5);
  check_graph(parse_with_random_weights(R"(graph g(%x: f32[270,61,5], %y: f32[270,5,90]) {
    %0 = dot(%x, %y) {lhs_batch = [2], rhs_batch = [1], lhs_contract = [0], rhs_contract = [0]} : f32[5,61,90]
    return "y" = %0
  })",
                                        3),
              1e-5);
}

std::vector<codegen::KernelSource> emitted(const std::string& text) {
  const Target target = Target::host_cpu(1);
  const ir::Graph graph = parse_with_random_weights(text, 3);
  const ir::Group group = testing::whole_graph(graph, ir::GroupKind::kContraction);
  std::vector<codegen::KernelSource> sources;
  for (const auto& kernel : schedule::schedule_contraction(graph, group, target).kernels) {
    sources.push_back(codegen::emit(schedule::plan_kernel(kernel, target), target));
  }
  return sources;
}

// Symbols of what the last kernel shares with others of this prefix.
std::set<std::string> shared(const std::string& text, const std::string& prefix) {
  const std::vector<codegen::KernelSource> sources = emitted(text);
  std::set<std::string> symbols;
  for (const codegen::KernelText& other : sources.back().others) {
    if (other.symbol.starts_with(prefix)) symbols.insert(other.symbol);
  }
  return symbols;
}

TEST(Sharing, DeepKernelsOfOtherSizesCallOne) {
  const auto one = shared(product(256, 320, 320), "gemm_any"), other = shared(product(61, 640, 1280), "gemm_any");
  EXPECT_EQ(one.size(), 1u);
  EXPECT_EQ(one, other);
  EXPECT_NE(emitted(product(256, 320, 320)).back().symbol, emitted(product(256, 320, 352)).back().symbol);
  const auto conv = shared(convolution("f32", 32, 64, 128, 2), "direct_any");
  EXPECT_EQ(conv.size(), 1u);
  EXPECT_EQ(conv, shared(convolution("f32", 16, 160, 320, 2), "direct_any"));
}

TEST(Sharing, ShortSumsAndSmallProblemsHaveTheirSizesWrittenOut) {
  for (const std::string& text : {product(256, 320, 255), product(4, 64, 512), convolution("f32", 32, 3, 64, 2)}) {
    EXPECT_TRUE(shared(text, "gemm_any").empty()) << text;
    EXPECT_TRUE(shared(text, "direct_any").empty()) << text;
  }
}

TEST(Sharing, MicroKernelsAreATextOfTheirOwn) {
  const auto tables = shared(product(256, 320, 320), "micro_");
  EXPECT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables, shared(product(256, 640, 64), "micro_"));
  EXPECT_NE(tables, shared(product(8, 1024, 320), "micro_"));
}

}  // namespace
}  // namespace heddle
