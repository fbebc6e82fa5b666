#include "codegen/text/line_nodes.h"

#include <gtest/gtest.h>

namespace heddle::codegen {
namespace {

using NodeLines = std::vector<std::vector<uint32_t>>;

TEST(LineNodes, CommentsNameTheNodesOfALine) {
  EXPECT_EQ(node_tag(12), "@12");
  EXPECT_EQ(nodes_by_line("const auto t1 = a * b;  // mul of @12\n"
                          "x = t1 + c;  // add of @7, mul of @12, add of @7\n"
                          "put(x);\n"
                          "y = 1;  // add of Add\n"),
            (NodeLines{{12}, {7, 12}, {}, {}}));
  EXPECT_EQ(nodes_by_line(""), NodeLines{});
}

TEST(LineNodes, WhatIsLoadedIsOfTheLineThatUsesIt) {
  EXPECT_EQ(nodes_by_line("const auto t0 = tile::load<1>(p);\n"
                          "const auto t1 = tile::load<1>(q);\n"
                          "const auto t2 = t0 + t1;  // add of @3\n"
                          "const auto t3 = tile::load<1>(r);"),
            (NodeLines{{3}, {3}, {3}, {}}));
}

TEST(LineNodes, ReductionsAreNamedInFrontOfTheirStage) {
  EXPECT_EQ(nodes_by_line("// sum of @4\n"
                          "// max of @5\n"
                          "tile::accumulator<tile::sum_of, float, W, 2> a0;\n"
                          "tile::accumulator<tile::max_of, float, W, 2> a10;\n"
                          "a0.add(t6 * t6, n, u);  // mul of @2\n"
                          "a10.add(t6, n, u);\n"
                          "// sum of @9\n"
                          "tile::put(s0, tile::sum_of::apply(tile::fetch<W>(s0, n), t8), n);\n"
                          "const auto sum0 = a0.result();\n"),
            (NodeLines{{}, {}, {4}, {5}, {2, 4}, {5}, {}, {9}, {4}}));
}

}  // namespace
}  // namespace heddle::codegen
