// Which elements reach memory, and which masks are true everywhere.
#include "lang/analysis/confined.h"

#include <gtest/gtest.h>

#include "lang/analysis/everywhere.h"
#include "lang/ir/parse.h"

namespace heddle::lang {
namespace {

// Rows (pid * 4 + i) % m of a 4 x 8 tile are loaded; BODY stores what it makes of %v.
std::string text_of(std::string_view body) {
  return R"(tile_ir 2
kernel @k(%x: ptr<f32>, %y: ptr<f32>, %m: i32, %n: i32) {
  %pid = program_id {axis = 0} : i32
  %four = constant {value = 4} : i32
  %m0 = mul %pid, %four : i32
  %i = iota {start = 0} : tile<4xi32>
  %m0s = splat %m0 : tile<4xi32>
  %rows = add %m0s, %i : tile<4xi32>
  %ms = splat %m : tile<4xi32>
  %wrapped = rem %rows, %ms : tile<4xi32>
  %we = expand_dims %wrapped {axis = 1} : tile<4x1xi32>
  %eight = constant {value = 8} : tile<4x1xi32>
  %wo = mul %we, %eight : tile<4x1xi32>
  %j = iota {start = 0} : tile<8xi32>
  %columns = expand_dims %j {axis = 0} : tile<1x8xi32>
  %wob = broadcast %wo : tile<4x8xi32>
  %cob = broadcast %columns : tile<4x8xi32>
  %o = add %wob, %cob : tile<4x8xi32>
  %xs = splat %x : tile<4x8xptr<f32>>
  %p = addptr %xs, %o : tile<4x8xptr<f32>>
  %v = load %p : tile<4x8xf32>
  %re = expand_dims %rows {axis = 1} : tile<4x1xi32>
  %ro = mul %re, %eight : tile<4x1xi32>
  %rob = broadcast %ro : tile<4x8xi32>
  %so = add %rob, %cob : tile<4x8xi32>
  %ys = splat %y : tile<4x8xptr<f32>>
  %q = addptr %ys, %so : tile<4x8xptr<f32>>
  %m2 = splat %m : tile<4x1xi32>
  %n2 = splat %n : tile<4x1xi32>
  %in = lt %re, %m2 : tile<4x1xi1>
  %inside = broadcast %in : tile<4x8xi1>
  %other = lt %re, %n2 : tile<4x1xi1>
  %others = broadcast %other : tile<4x8xi1>
)" + std::string(body) +
         "}\n";
}

bool confined(std::string_view body) {
  const Kernel kernel = parse_and_verify(text_of(body));
  const WindowAnalysis windows(kernel);
  const Op* load = nullptr;
  for_each_op(kernel.body, [&](const Op& op) { load = op.code == OpCode::kLoad ? &op : load; });
  const std::optional<Window> window = windows.window(load->operands[0]);
  EXPECT_TRUE(window && window->dims[0].wraps && window->dims[0].size && !window->dims[1].size);
  return is_confined(kernel, windows, load->results[0], 0, window->dims[0].start, *window->dims[0].size);
}

TEST(Confined, RowsStayRowsUpToTheirStore) {
  EXPECT_TRUE(confined("  store %q, %v, %inside\n"));
  EXPECT_TRUE(confined(R"(
  %twice = add %v, %v : tile<4x8xf32>
  %zero = constant {value = 0.0} : tile<4x8xf32>
  %bound = constant {value = 3} : i32
  %first = constant {value = 0} : i32
  %one = constant {value = 1} : i32
  %sum = for %k = %first to %bound step %one (%acc = %zero) : tile<4x8xf32> {
    %next = add %acc, %twice : tile<4x8xf32>
    yield %next
  }
  store %q, %sum, %inside
)"));
}

TEST(Confined, WhatReachesMemoryElsewhere) {
  EXPECT_FALSE(confined("  store %q, %v\n"));
  EXPECT_FALSE(confined("  store %q, %v, %others\n"));
  EXPECT_FALSE(confined(R"(
  %sums = reduce %v {axis = 0} : tile<8xf32> { (%a: f32, %b: f32) %c = add %a, %b : f32  yield %c }
  %se = expand_dims %sums {axis = 0} : tile<1x8xf32>
  %s = broadcast %se : tile<4x8xf32>
  store %q, %s, %inside
)"));
  EXPECT_FALSE(confined(R"(
  %zero = constant {value = 0.0} : tile<4x8xf32>
  %large = gt %v, %zero : tile<4x8xi1>
  store %q, %zero, %large
)"));
}

TEST(Everywhere, ComparisonsOfIndices) {
  const Kernel kernel = parse_and_verify(text_of("  %both = and %inside, %others : tile<4x8xi1>\n"));
  const IndexAnalysis indices(kernel);
  const Op& both = kernel.body.ops.back();
  const auto least = true_everywhere(kernel, indices, both.results[0]);
  ASSERT_TRUE(least.has_value());
  ASSERT_EQ(least->size(), 2u);
  EXPECT_EQ((*least)[0].text(kernel), "-4 + %m + %pid * -4");
  EXPECT_EQ((*least)[1].text(kernel), "-4 + %n + %pid * -4");
}

}  // namespace
}  // namespace heddle::lang
