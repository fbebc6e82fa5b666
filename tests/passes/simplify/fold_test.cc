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

TEST(Fold, RepeatedSlicesBecomeABroadcast) {
  expect_ir(R"(graph(%x: i64[2,2,3]) {
      %a = constant {value = i64[2,2,3]{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}}
      %y = add(%x, %a)
      return "y" = %y
    })",
            {"fold"}, R"(graph(%x: i64[2,2,3]) {
      %a = constant {value = i64[2,3]{1, 2, 3, 4, 5, 6}}
      %b = broadcast(%a) {shape = [2,2,3], dims = [0,2]}
      %y = add(%x, %b)
      return "y" = %y
    })");
}

// A causal mask as transformers computes it: positions looked up by sequence and place, and sequences that begin where
// positions do not go on.
std::string packed_mask(int64_t batch, int64_t length, int64_t first_length) {
  return fmt::format(
      R"(graph(%x: bool[{0},{1},{1}]) {{
      %line = iota {{dtype = i64, shape = [{1}], dim = 0}}
      %rest = constant {{value = i64[]{{{2}}}}}
      %turn = broadcast(%rest) {{shape = [{1}], dims = []}}
      %place = mod(%line, %turn)
      %places = broadcast(%place) {{shape = [{0},{1}], dims = [1]}}
      %none = constant {{value = i64[{0},1]{{-1}}}}
      %shifted = concat(%none, %places) {{dim = 1}}
      %before = slice(%shifted) {{starts = [0,0], limits = [{0},{1}], strides = [1,1]}}
      %step = sub(%places, %before)
      %one = constant {{value = i64[{0},{1}]{{1}}}}
      %begins = ne(%step, %one)
      %begun = cast(%begins) {{to = i64}}
      %sequence = scan(%begun) {{kind = "sum", dim = 1, exclusive = 0, reverse = 0}}
      %batches = iota {{dtype = i64, shape = [{0}], dim = 0}}
      %b = broadcast(%batches) {{shape = [{0},{1},1], dims = [0]}}
      %l = broadcast(%line) {{shape = [{0},{1},1], dims = [1]}}
      %at = concat(%b, %l) {{dim = 2}}
      %own = gather_nd(%sequence, %at) {{batch_dims = 0}}
      %position = gather_nd(%places, %at) {{batch_dims = 0}}
      %r = broadcast(%position) {{shape = [{0},{1},{1}], dims = [0,1]}}
      %c = broadcast(%position) {{shape = [{0},{1},{1}], dims = [0,2]}}
      %causal = le(%c, %r)
      %rs = broadcast(%own) {{shape = [{0},{1},{1}], dims = [0,1]}}
      %cs = broadcast(%own) {{shape = [{0},{1},{1}], dims = [0,2]}}
      %same = eq(%rs, %cs)
      %mask = and(%causal, %same)
      %y = and(%x, %mask)
      return "y" = %y
    }})",
      batch, length, first_length);
}

TEST(Fold, MasksOfPackedSequencesAreComparisonsOfPositions) {
  const ir::Graph graph = run_pipeline(ir::parse(packed_mask(5, 400, 400)), {test_target()});
  int64_t comparisons = 0;
  for (const ir::Node& node : graph.nodes()) {
    EXPECT_TRUE(ir::is_elementwise(node.op) || ir::class_of(node.op) == ir::OpClass::kLayout ||
                node.op == ir::Op::kIota || node.op == ir::Op::kParameter || node.op == ir::Op::kConstant)
        << ir::print(graph);
    if (node.op == ir::Op::kConstant) {
      EXPECT_LE(node.attrs.tensor("value").size(), 1) << ir::print(graph);
    }
    comparisons += node.op == ir::Op::kLe ? 1 : 0;
    EXPECT_NE(node.op, ir::Op::kEq);
  }
  EXPECT_EQ(comparisons, 1);
}

TEST(Fold, MasksOfPackedSequencesKeepTheirValues) {
  for (const int64_t first_length : {7, 30, 31}) {  // of the sequences of 31 tokens
    const ir::Graph graph = ir::parse(packed_mask(3, 31, first_length));
    expect_same(graph, run_pipeline(graph, {test_target()}));
  }
}

TEST(Fold, TablesOfSeveralPositionsAreNotStored) {
  const ir::Graph graph = run(R"(graph(%x: i64[600,600]) {
      %i = iota {dtype = i64, shape = [600], dim = 0}
      %r = broadcast(%i) {shape = [600,600], dims = [0]}
      %c = broadcast(%i) {shape = [600,600], dims = [1]}
      %d = sub(%r, %c)
      %y = add(%x, %d)
      return "y" = %y
    })",
                              {"fold"});
  for (const ir::Node& node : graph.nodes()) EXPECT_NE(node.op, ir::Op::kConstant);
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

TEST(Fold, QuantisedWeightsAreExpandedUnlessTheyArePacked) {
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
  ir::Graph after = run_pipeline(graph, {test_target()});
  ASSERT_EQ(after.nodes().size(), 5u) << ir::print(after);  // packed
  EXPECT_EQ(after.nodes()[3].op, ir::Op::kDequantize);
  PipelineOptions options;
  options.disabled = {"quantized_weights"};
  after = run_pipeline(graph, {test_target()}, options);
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
