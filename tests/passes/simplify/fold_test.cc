#include "tests/passes/pass_test_util.h"

namespace heddle::passes {
namespace {

TEST(Fold, ConstantsAreEvaluated) {
  expect_ir(R"(graph(%x: f32[2,2]) {
      %a = constant {value = f32[2,2]{1, 2, 3, 4}}
      %b = transpose(%a) {perm = [1,0]}
      %c = constant {value = f32[]{10}}
      %d = broadcast(%c) {shape = [2,2], dims = []}
      %e = mul(%b, %d)
      %y = add(%x, %e)
      return "y" = %y
    })",
            {"fold"}, R"(graph(%x: f32[2,2]) {
      %e = constant {value = f32[2,2]{10, 30, 20, 40}}
      %y = add(%x, %e)
      return "y" = %y
    })");
}

TEST(Fold, EqualElementsBecomeABroadcast) {
  expect_ir(R"(graph(%x: f32[2,2]) {
      %a = constant {value = f32[2,2]{3}}
      %y = add(%x, %a)
      return "y" = %y
    })",
            {"fold"}, R"(graph(%x: f32[2,2]) {
      %a = constant {value = f32[]{3}}
      %b = broadcast(%a) {shape = [2,2], dims = []}
      %y = add(%x, %b)
      return "y" = %y
    })");
}

TEST(Fold, LoopsReadStoredConstants) {
  const auto text = [](const std::string& state) {
    return "graph(%n: i64[], %c: bool[]) { " + state +
           " %r = loop(%n, %c, %s) {states = 1, scans = 0, body = graph(%i: i64[], %c: bool[], %s: f32[3]) { "
           "%t = exp(%s) return \"c\" = %c, \"s\" = %t }} return \"y\" = %r }";
  };
  const std::string stored = text("%s = constant {value = f32[3]{2}}");
  expect_ir(text("%v = constant {value = f32[]{2}} %s = broadcast(%v) {shape = [3], dims = []}"), {"fold"}, stored);
  expect_ir(stored, {"fold"}, stored);
}

TEST(Fold, QuantisedWeightsAreExpanded) {
  Tensor weights(DType::kI8, {1300, 1300 * 3});  // more elements than the float64 evaluator is asked for
  ir::Graph graph;
  const auto x = graph.parameter("x", {DType::kF32, {1, 1300}});
  const auto w = graph.emit(ir::Op::kCast, {graph.constant(weights)}, {{"to", DType::kF32}});
  const auto scale = graph.constant(Tensor::of<float>(DType::kF32, {1}, {0.5F}));
  const auto s = graph.emit(ir::Op::kBroadcast, {scale}, {{"shape", weights.shape()}, {"dims", ir::Ints{1}}});
  const auto v = graph.emit(ir::Op::kMul, {w, s});
  graph.output("y", graph.emit(ir::Op::kDot, {x, v},
                               {{"lhs_batch", ir::Ints{}},
                                {"rhs_batch", ir::Ints{}},
                                {"lhs_contract", ir::Ints{1}},
                                {"rhs_contract", ir::Ints{0}}}));
  const ir::Graph after = run_pipeline(graph, {test_target()});
  ASSERT_EQ(after.nodes().size(), 3u) << ir::print(after);
  EXPECT_EQ(after.nodes()[1].op, ir::Op::kConstant);
}

TEST(Fold, LargeBroadcastsAreNotStored) {
  const ir::Graph graph = run(R"(graph(%x: f32[4096,4096]) {
      %a = constant {value = f32[2]{1, 2}}
      %b = broadcast(%a) {shape = [4096,2,2048], dims = [1]}
      %c = reshape(%b) {shape = [4096,4096]}
      %y = add(%x, %c)
      return "y" = %y
    })",
                              {"fold"});
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != ir::Op::kConstant) continue;
    EXPECT_LE(node.attrs.tensor("value").bytes(), 8u);
  }
}

TEST(Fold, ADataErrorIsLeftForTheRun) {
  const std::string_view text = R"(graph() {
      %a = constant {value = f32[2]{1, 2}}
      %i = constant {value = i64[1]{7}}
      %y = gather(%a, %i) {dim = 0}
      return "y" = %y
    })";
  expect_ir(text, {"fold"}, text);
}

TEST(Cse, EqualNodesAndConstantsJoin) {
  expect_ir(R"(graph(%x: f32[2]) {
      %a = constant {value = f32[2]{1, 2}}
      %b = constant {value = f32[2]{1, 2}}
      %c = add(%x, %a)
      %d = add(%x, %b)
      %e = mul(%c, %d)
      return "y" = %e
    })",
            {"cse"}, R"(graph(%x: f32[2]) {
      %a = constant {value = f32[2]{1, 2}}
      %c = add(%x, %a)
      %e = mul(%c, %c)
      return "y" = %e
    })");
}

TEST(Cse, ZerosOfDifferentSignAreDifferent) {
  const std::string_view text = R"(graph() {
      %a = constant {value = f32[]{0}}
      %b = constant {value = f32[]{-0}}
      return "a" = %a, "b" = %b
    })";
  expect_ir(text, {"cse"}, text);
}

TEST(Dce, OnlyOutputsKeepNodes) {
  expect_ir(R"(graph(%x: f32[2], %unused: f32[3]) {
      %a = exp(%x)
      %b = log(%x)
      return "y" = %b
    })",
            {"dce"}, R"(graph(%x: f32[2], %unused: f32[3]) {
      %b = log(%x)
      return "y" = %b
    })");
}

TEST(Pipeline, RunsOnBodies) {
  expect_ir(R"(graph(%c: bool[], %x: f32[2]) {
      %y = if(%c, %x) {then = graph(%a: f32[2]) {
        %b = neg(%a)
        %d = neg(%b)
        return "y" = %d
      }, else = graph(%a: f32[2]) {
        %b = exp(%a)
        return "y" = %b
      }}
      return "y" = %y
    })",
            {"canonicalize"}, R"(graph(%c: bool[], %x: f32[2]) {
      %y = if(%c, %x) {then = graph(%a: f32[2]) {
        return "y" = %a
      }, else = graph(%a: f32[2]) {
        %b = exp(%a)
        return "y" = %b
      }}
      return "y" = %y
    })");
}

TEST(Pipeline, UnknownPassesAreNamed) {
  try {
    run("graph(%x: f32[1]) { return \"y\" = %x }", {"fould"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("canonicalize"), std::string::npos);
  }
}

}  // namespace
}  // namespace heddle::passes
