// Where tiles of pointers point, as windows of matrices, and loops that move them.
#include "lang/analysis/windows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lang/ir/parse.h"
#include "lang/ir/print.h"
#include "lang/ir/verify.h"
#include "lang/passes/uniform_induction.h"

namespace heddle::lang {
namespace {

// "x + OFFSET; extent: stride STRIDE, START < SIZE; ..."
std::string text_of(const Kernel& kernel, const std::optional<Window>& window) {
  if (!window) return "none";
  std::string text = fmt::format("{} + {}", kernel.value_name(window->base), window->offset.text(kernel));
  for (const Window::Dim& dim : window->dims) {
    text += fmt::format("; {}: stride {}, {} < {}", dim.extent, dim.stride.text(kernel), dim.start.text(kernel),
                        dim.size ? dim.size->text(kernel) : "any");
  }
  for (const ValueId condition : window->conditions) text += "; if " + kernel.value_name(condition);
  return text;
}

// Windows of the loads of a kernel, in order.
std::vector<std::string> windows_of(const Kernel& kernel) {
  const WindowAnalysis analysis(kernel);
  std::vector<std::string> texts;
  for_each_op(kernel.body, [&](const Op& op) {
    if (op.code != OpCode::kLoad) return;
    texts.push_back(text_of(kernel, analysis.window(op.operands[0], op.operands.size() > 1 ? op.operands[1] : -1)));
  });
  return texts;
}

// What each kernel below begins with: rows m of 8 elements, row stride s.
constexpr std::string_view kHead = R"(tile_ir 2
kernel @k(%x: ptr<f32>, %m: i32, %n: i32, %s: i32, %go: i1) {
  %pid = program_id {axis = 0} : i32
  %four = constant {value = 4} : i32
  %m0 = mul %pid, %four : i32
  %i = iota {start = 0} : tile<4xi32>
  %m0s = splat %m0 : tile<4xi32>
  %rows = add %m0s, %i : tile<4xi32>
  %rowe = expand_dims %rows {axis = 1} : tile<4x1xi32>
  %j = iota {start = 0} : tile<8xi32>
  %columns = expand_dims %j {axis = 0} : tile<1x8xi32>
  %ss = splat %s : tile<4x1xi32>
  %ro = mul %rowe, %ss : tile<4x1xi32>
  %rob = broadcast %ro : tile<4x8xi32>
  %cob = broadcast %columns : tile<4x8xi32>
  %o = add %rob, %cob : tile<4x8xi32>
  %xs = splat %x : tile<4x8xptr<f32>>
  %p = addptr %xs, %o : tile<4x8xptr<f32>>
  %ms = splat %m : tile<4x1xi32>
  %rin = lt %rowe, %ms : tile<4x1xi1>
  %rinb = broadcast %rin : tile<4x8xi1>
)";

Kernel with_head(std::string_view body) {
  return parse_and_verify(std::string(kHead) + std::string(body) + "}\n");
}

TEST(Windows, StridesStartsAndSizes) {
  const Kernel kernel = with_head(R"(
  %a = load %p : tile<4x8xf32>
  %b = load %p, %rinb : tile<4x8xf32>
  %gos = splat %go : tile<4x8xi1>
  %both = and %rinb, %gos : tile<4x8xi1>
  %c = load %p, %both : tile<4x8xf32>
  %pt = permute %p {order = [1, 0]} : tile<8x4xptr<f32>>
  %mt = permute %rinb {order = [1, 0]} : tile<8x4xi1>
  %d = load %pt, %mt : tile<8x4xf32>
)");
  EXPECT_EQ(windows_of(kernel), (std::vector<std::string>{
                                    "%x + %s * %pid * 4; 4: stride %s, 0 < any; 8: stride 1, 0 < any",
                                    "%x + 0; 4: stride %s, %pid * 4 < %m; 8: stride 1, 0 < any",
                                    "%x + 0; 4: stride %s, %pid * 4 < %m; 8: stride 1, 0 < any; if %go",
                                    "%x + 0; 8: stride 1, 0 < any; 4: stride %s, %pid * 4 < %m",
                                }));
}

TEST(Windows, WhatIsNoWindow) {
  const Kernel kernel = with_head(R"(
  %n8 = splat %n : tile<4x8xi32>
  %wrapped = rem %o, %n8 : tile<4x8xi32>
  %q = addptr %xs, %wrapped : tile<4x8xptr<f32>>
  %a = load %q : tile<4x8xf32>
  %odd = ne %o, %n8 : tile<4x8xi1>
  %b = load %p, %odd : tile<4x8xf32>
)");
  EXPECT_EQ(windows_of(kernel), (std::vector<std::string>{"none", "none"}));
}

// A loop along n: the pointers move by 8, what is left of n shrinks.
TEST(Windows, LoopsThatMoveTheirPointers) {
  Kernel kernel = with_head(R"(
  %zero = constant {value = 0} : i32
  %eight = constant {value = 8} : i32
  %by = constant {value = 8} : tile<4x8xi32>
  %none = constant {value = 0.0} : tile<4x8xf32>
  %sum, %end = for %k = %zero to %n step %eight (%acc = %none, %q = %p) : tile<4x8xf32>, tile<4x8xptr<f32>> {
    %left = sub %n, %k : i32
    %lefts = splat %left : tile<1x8xi32>
    %cin = lt %columns, %lefts : tile<1x8xi1>
    %cinb = broadcast %cin : tile<4x8xi1>
    %in = and %cinb, %rinb : tile<4x8xi1>
    %v = load %q, %in : tile<4x8xf32>
    %next = add %acc, %v : tile<4x8xf32>
    %moved = addptr %q, %by : tile<4x8xptr<f32>>
    yield %next, %moved
  }
  %last = load %end, %rinb : tile<4x8xf32>
)");
  EXPECT_EQ(windows_of(kernel), (std::vector<std::string>{"none", "none"}));
  uniform_induction(kernel);
  verify(kernel);
  EXPECT_EQ(print(parse_and_verify(print(kernel))), print(kernel));
  const std::vector<std::string> windows = windows_of(kernel);
  EXPECT_EQ(windows[0], "%x + 0; 4: stride %s, %pid * 4 < %m; 8: stride 1, %k < %n");
  EXPECT_NE(windows[1].find("; 4: stride %s, %pid * 4 < %m; 8: stride 1, 0 < any"), std::string::npos) << windows[1];
}

// The same loop with pointers made of its variable: the window is that of the whole matrix at k.
TEST(Windows, StartsOfALoopsVariable) {
  const Kernel kernel = with_head(R"(
  %zero = constant {value = 0} : i32
  %eight = constant {value = 8} : i32
  for %k = %zero to %n step %eight () {
    %ks = splat %k : tile<4x8xi32>
    %q = addptr %p, %ks : tile<4x8xptr<f32>>
    %left = sub %n, %k : i32
    %lefts = splat %left : tile<1x8xi32>
    %cin = lt %columns, %lefts : tile<1x8xi1>
    %cinb = broadcast %cin : tile<4x8xi1>
    %in = and %cinb, %rinb : tile<4x8xi1>
    %v = load %q, %in : tile<4x8xf32>
    store %q, %v, %in
    yield
  }
)");
  EXPECT_EQ(windows_of(kernel),
            (std::vector<std::string>{"%x + 0; 4: stride %s, %pid * 4 < %m; 8: stride 1, %k < %n"}));
}

}  // namespace
}  // namespace heddle::lang
