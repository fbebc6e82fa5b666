// Convolutions whose images have the channels first, with lanes along the pixels.
#include <fmt/ranges.h>

#include "testing.h"

namespace heddle {
namespace {

using testing::check_graph;
using testing::parse_with_random_weights;

struct Case {
  Shape x, w;
  std::vector<int64_t> strides, low, high, dilations;
  int64_t groups = 1;
};

Shape result_of(const Case& c) {
  Shape y = {c.x[0], c.w[0]};
  for (size_t d = 0; d < c.strides.size(); ++d) {
    const int64_t padded = c.x[2 + d] + c.low[d] + c.high[d], reach = (c.w[2 + d] - 1) * c.dilations[d] + 1;
    y.push_back((padded - reach) / c.strides[d] + 1);
  }
  return y;
}

std::string conv_text(const Case& c, const std::string& type, const std::string& sums) {
  const auto list = [](const auto& values) { return fmt::format("[{}]", fmt::join(values, ",")); };
  const std::string y = list(result_of(c));
  return fmt::format(
      "graph g(%x: {0}{1}, %r: {2}{3}) {{\n  %w = constant {{value = {0}{4}{{1}}}}\n  %b = constant {{value = "
      "{2}[{5}]{{1}}}}\n  %0 = conv(%x, %w) {{strides = {6}, low = {7}, high = {8}, dilations = {9}, lhs_dilations = "
      "{10}, "
      "groups = {11}, layout = \"nchw\"}} : {2}{3}\n  %1 = broadcast(%b) {{shape = {3}, dims = [1]}} : {2}{3}\n  %2 = "
      "add(%0, %1) : {2}{3}\n  %3 = max(%2, %r) : {2}{3}\n  return \"y\" = %3\n}}",
      type, list(c.x), sums, y, list(c.w), c.w[0], list(c.strides), list(c.low), list(c.high), list(c.dilations),
      list(std::vector<int64_t>(c.strides.size(), 1)), c.groups);
}

void check(const Case& c, const testing::RunOptions& options = {}) {
  const std::string text = conv_text(c, "f32", "f32");
  SCOPED_TRACE(text);
  check_graph(parse_with_random_weights(text, 3), 5e-6, options);
}

TEST(Planar, Variants) {
  // Pointwise, strided, padded on one side, cropped, dilated beyond a block, of one row, of one column.
  check({{2, 8, 7, 9}, {21, 8, 1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}}, {.threads = 2});
  check({{1, 3, 21, 37}, {10, 3, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, {.threads = 2});
  check({{2, 5, 19, 70}, {3, 5, 3, 5}, {1, 3}, {0, 2}, {2, 0}, {1, 1}});
  check({{1, 4, 9, 33}, {6, 4, 2, 3}, {1, 1}, {-1, -2}, {0, -3}, {1, 1}});
  check({{1, 3, 40, 41}, {5, 3, 3, 3}, {1, 1}, {13, 17}, {13, 17}, {13, 17}}, {.threads = 2});
  check({{2, 6, 1000}, {7, 6, 9}, {1}, {4}, {4}, {1}}, {.threads = 2});
  check({{1, 8, 40, 1}, {6, 8, 3, 1}, {1, 1}, {1, 0}, {1, 0}, {1, 1}});
  check({{1, 3, 17, 20}, {5, 3, 1, 1}, {2, 2}, {0, 0}, {0, 0}, {1, 1}});
}

// Of one channel, so that rows share lines; of several dimensions; of groups.
TEST(Planar, GroupsAndDepth) {
  check({{2, 10, 13, 35}, {10, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 10}, {.threads = 2});
  check({{1, 5, 30, 31}, {10, 1, 5, 3}, {2, 2}, {2, 1}, {2, 1}, {1, 1}, 5});
  check({{1, 3, 11, 64}, {3, 1, 3, 3}, {1, 1}, {0, 0}, {0, 0}, {1, 4}, 3});
  check({{1, 3, 11, 64}, {3, 1, 3, 3}, {1, 1}, {4, 4}, {4, 4}, {4, 4}, 3});
  check({{1, 12, 9, 21}, {8, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 4});
  check({{1, 4, 5, 6, 19}, {6, 4, 3, 2, 3}, {1, 2, 1}, {1, 0, 1}, {1, 0, 1}, {1, 1, 1}}, {.threads = 2});
  check({{1, 4, 5, 8, 18}, {4, 1, 3, 3, 3}, {2, 1, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 4});
}

TEST(Planar, EveryInstructionSetAndCandidate) {
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2}) {
    check({{1, 3, 9, 50}, {17, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, {.isa = isa});
    check({{1, 4, 14, 29}, {4, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 4}, {.isa = isa});
  }
  for (const unsigned choice : {1u, 2u, 3u}) {
    check({{1, 6, 33, 150}, {20, 6, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, {.choice = choice});
  }
}

TEST(Planar, OtherTypes) {
  const Case c = {{1, 3, 9, 25}, {7, 3, 3, 3}, {1, 2}, {1, 1}, {1, 1}, {1, 1}};
  check_graph(parse_with_random_weights(conv_text(c, "f64", "f64"), 3), 1e-12);
  check_graph(parse_with_random_weights(conv_text(c, "u8", "i32"), 3), 0);
  check_graph(parse_with_random_weights(conv_text(c, "f16", "f16"), 3), 2e-3);
}

// Results with the channels last: several channels of a micro tile, and one.
TEST(Planar, ChannelsLastResults) {
  for (const auto& [filters, groups] : {std::pair{21, 1}, {3, 3}}) {
    for (const CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512}) {
      check_graph(
          parse_with_random_weights(
              fmt::format(
                  "graph g(%x: f32[2,3,9,37], %r: f32[2,9,37,{0}]) {{\n  %w = constant {{value = "
                  "f32[{0},{1},3,3]{{1}}}}\n"
                  "  %0 = conv(%x, %w) {{strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations "
                  "= [1,1], groups = {2}, layout = \"nchw\"}} : f32[2,{0},9,37]\n  %1 = transpose(%0) {{perm = "
                  "[0,2,3,1]}} : f32[2,9,37,{0}]\n  %2 = add(%1, %r) : f32[2,9,37,{0}]\n  return \"y\" = %2\n}}",
                  filters, 3 / groups, groups),
              3),
          5e-6, {.isa = isa});
    }
  }
}

// A part of the rows and pixels, in a layout in which lanes are not neighbours.
TEST(Planar, StoresAPartInAnotherLayout) {
  check_graph(parse_with_random_weights(R"(graph g(%x: f32[1,3,9,21], %w: f32[5,3,3,3]) {
    %0 = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"} : f32[1,5,9,21]
    %1 = slice(%0) {starts = [0,1,2,3], limits = [1,4,9,20], strides = [1,1,1,1]} : f32[1,3,7,17]
    %2 = transpose(%1) {perm = [0,2,3,1]} : f32[1,7,17,3]
    return "y" = %2
  })",
                                        3),
              5e-6);
}

}  // namespace
}  // namespace heddle
