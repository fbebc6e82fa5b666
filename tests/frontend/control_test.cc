#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model_bytes.h"

namespace heddle::onnx {
namespace {

int count(const ir::Graph& graph, ir::Op op) {
  int found = 0;
  for (const ir::Node& node : graph.nodes()) found += node.op == op;
  return found;
}

const PortSpec kIteration{"i", DType::kI64, {}}, kCondition{"c", DType::kBool, {}};

GraphSpec if_graph(std::vector<NodeSpec> then_nodes, std::vector<NodeSpec> else_nodes) {
  return {{{"ReduceSum", {"x"}, {"sum"}, {{"keepdims", int64_t{0}}}},
           {"Greater", {"sum", "zero"}, {"positive"}},
           {"If",
            {"positive"},
            {"y"},
            {{"then_branch", GraphSpec{std::move(then_nodes), {}, {"r"}}},
             {"else_branch", GraphSpec{std::move(else_nodes), {}, {"r"}}}}}},
          {{"x", DType::kF32, {2}}},
          {"y"},
          {{"zero", floats({}, {0})}}};
}

TEST(If, BranchesOfEqualTypeStayInTheGraph) {
  const GraphSpec graph = if_graph({{"Add", {"x", "x"}, {"r"}}}, {{"Neg", {"x"}, {"r"}}});
  EXPECT_EQ(count(import_spec(graph).graph, ir::Op::kIf), 1);
  EXPECT_EQ(run_spec(graph, {{"x", floats({2}, {1, 2})}}).at("y").f(), (std::vector<double>{2, 4}));
  EXPECT_EQ(run_spec(graph, {{"x", floats({2}, {1, -2})}}).at("y").f(), (std::vector<double>{-1, 2}));
}

TEST(If, BranchesOfDifferentShapeFixTheInputThatDecides) {
  const GraphSpec graph =
      if_graph({{"Identity", {"x"}, {"r"}}}, {{"Concat", {"x", "x"}, {"r"}, {{"axis", int64_t{0}}}}});
  EXPECT_EQ(run_spec(graph, {{"x", floats({2}, {-1, -2})}}).at("y").f(), (std::vector<double>{-1, -2, -1, -2}));
  try {
    import_spec(graph);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnknownShape);
    EXPECT_NE(std::string(error.what()).find("input x"), std::string::npos) << error.what();
  }
}

TEST(If, AConstantConditionLeavesOneBranch) {
  GraphSpec graph = if_graph({{"Identity", {"x"}, {"r"}}}, {{"Neg", {"x"}, {"r"}}});
  graph.nodes.erase(graph.nodes.begin(), graph.nodes.begin() + 2);
  graph.initializers["positive"] = Tensor::of<uint8_t>(DType::kBool, {}, {0});
  const Imported imported = import_spec(graph);
  EXPECT_EQ(count(imported.graph, ir::Op::kIf), 0);
  EXPECT_EQ(count(imported.graph, ir::Op::kNeg), 1);
}

// s' = s + s, with the states before it stacked; stops when max(s') reaches the limit.
GraphSpec doubling(bool conditional, bool stacked) {
  GraphSpec body{{{"Add", {"s", "s"}, {"s2"}}, {"Identity", {"s"}, {"slice"}}},
                 {kIteration, kCondition, {"s", DType::kF32, {2}}},
                 {"c2", "s2"}};
  if (conditional) {
    body.nodes.push_back({"ReduceMax", {"s2"}, {"m"}, {{"keepdims", int64_t{0}}}});
    body.nodes.push_back({"Less", {"m", "limit"}, {"c2"}});
  } else {
    body.nodes.push_back({"Identity", {"c"}, {"c2"}});
  }
  if (stacked) body.outputs.push_back("slice");
  GraphSpec graph{{{"Loop", {"trip", "", "x"}, {"y"}, {{"body", body}}}},
                  {{"x", DType::kF32, {2}}},
                  {"y"},
                  {{"trip", longs({}, {4})}, {"limit", floats({}, {5})}}};
  if (stacked) {
    graph.nodes[0].outputs.push_back("ys");
    graph.outputs.push_back("ys");
  }
  return graph;
}

TEST(Loop, CountsStacksAndStops) {
  const std::map<std::string, Tensor> x = {{"x", floats({2}, {1, -1})}};
  const auto counted = run_spec(doubling(false, true), x);
  EXPECT_EQ(counted.at("y").f(), (std::vector<double>{16, -16}));
  EXPECT_EQ(counted.at("ys").f(), (std::vector<double>{1, -1, 2, -2, 4, -4, 8, -8}));
  EXPECT_EQ(run_spec(doubling(true, false), x).at("y").f(), (std::vector<double>{8, -8}));
  EXPECT_EQ(count(import_spec(doubling(true, false)).graph, ir::Op::kLoop), 1);
  // How many slices there are depends on the data: the loop is unrolled for the given value.
  const auto stopped = run_spec(doubling(true, true), x);
  EXPECT_EQ(stopped.at("ys").shape, (Shape{3, 2}));
  EXPECT_THROW(import_spec(doubling(true, true)), Error);
}

TEST(Loop, StatesThatGrowAreUnrolled) {
  const GraphSpec body{{{"Concat", {"s", "one"}, {"s2"}, {{"axis", int64_t{0}}}}, {"Identity", {"c"}, {"c2"}}},
                       {kIteration, kCondition, {"s", DType::kF32, {-1}}},
                       {"c2", "s2"}};
  const GraphSpec graph{{{"Loop", {"trip", "", "x"}, {"y"}, {{"body", body}}}},
                        {{"x", DType::kF32, {1}}, {"trip", DType::kI64, {}}},
                        {"y"},
                        {{"one", floats({1}, {1})}}};
  const auto result = run_spec(graph, {{"x", floats({1}, {7})}, {"trip", longs({}, {3})}});
  EXPECT_EQ(result.at("y").f(), (std::vector<double>{7, 1, 1, 1}));
  EXPECT_THROW(run_spec(graph, {{"x", floats({1}, {7})}, {"trip", longs({}, {1 << 20})}}), Error);
}

TEST(Loop, UnrollingIsRefusedBeforeItTakesLong) {
  GraphSpec body{{{"Concat", {"s", "one"}, {"v0"}, {{"axis", int64_t{0}}}}, {"Identity", {"c"}, {"c2"}}},
                 {kIteration, kCondition, {"s", DType::kF32, {-1}}},
                 {"c2", "v60"}};
  for (int i = 0; i < 60; ++i) body.nodes.push_back({"Sin", {fmt::format("v{}", i)}, {fmt::format("v{}", i + 1)}});
  GraphSpec graph{{{"Loop", {"trip", "", "x"}, {"y"}, {{"body", body}}}},
                  {{"x", DType::kF32, {1}}},
                  {"y"},
                  {{"one", floats({1}, {1})}, {"trip", longs({}, {4000})}}};
  try {
    import_spec(graph);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupportedOperator);
    EXPECT_NE(std::string(error.what()).find("into more than 100000 nodes"), std::string::npos) << error.what();
  }
  graph.initializers["trip"] = longs({}, {3});
  EXPECT_EQ(run_spec(graph, {{"x", floats({1}, {7})}}).at("y").shape, (Shape{4}));
}

// A loop of constants that never ends must not hang the import that wants to know its result.
TEST(Loop, EndlessConstantLoopsAreNotFolded) {
  const GraphSpec body{{{"Add", {"s", "one"}, {"s2"}}, {"Identity", {"c"}, {"c2"}}},
                       {kIteration, kCondition, {"s", DType::kI64, {}}},
                       {"c2", "s2"}};
  const GraphSpec graph{{{"Loop", {"", "", "one"}, {"n"}, {{"body", body}}}, {"Range", {"one", "n", "one"}, {"y"}}},
                        {},
                        {"y"},
                        {{"one", longs({}, {1})}}};
  EXPECT_THROW(import_spec(graph), Error);
}

TEST(Loop, CarriesSequences) {
  const GraphSpec body{{{"Cast", {"i"}, {"f"}, {{"to", int64_t{1}}}},
                        {"SequenceInsert", {"s", "f"}, {"s2"}},
                        {"Identity", {"c"}, {"c2"}}},
                       {kIteration, kCondition, {"s"}},
                       {"c2", "s2"}};
  const GraphSpec graph{{{"SequenceEmpty", {}, {"empty"}},
                         {"Loop", {"trip", "", "empty"}, {"all"}, {{"body", body}}},
                         {"ConcatFromSequence", {"all"}, {"y"}, {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}}}},
                        {},
                        {"y"},
                        {{"trip", longs({}, {3})}}};
  EXPECT_EQ(run_spec(graph, {}).at("y").f(), (std::vector<double>{0, 1, 2}));
}

TEST(Scan, AxesAndDirections) {
  const GraphSpec body{{{"Add", {"s", "xi"}, {"s2"}}, {"Identity", {"s2"}, {"o"}}},
                       {{"s", DType::kF32, {2}}, {"xi", DType::kF32, {2}}},
                       {"s2", "o"}};
  GraphSpec graph{{{"Scan",
                    {"s0", "x"},
                    {"y", "ys"},
                    {{"body", body},
                     {"num_scan_inputs", int64_t{1}},
                     {"scan_input_axes", std::vector<int64_t>{1}},
                     {"scan_input_directions", std::vector<int64_t>{1}},
                     {"scan_output_axes", std::vector<int64_t>{1}}}}},
                  {{"s0", DType::kF32, {2}}, {"x", DType::kF32, {2, 3}}},
                  {"y", "ys"}};
  const auto results = run_spec(graph, {{"s0", floats({2}, {0, 0})}, {"x", floats({2, 3}, {1, 2, 3, 10, 20, 30})}});
  EXPECT_EQ(results.at("y").f(), (std::vector<double>{6, 60}));
  EXPECT_EQ(results.at("ys").f(), (std::vector<double>{3, 5, 6, 30, 50, 60}));
  graph.nodes[0].attributes["scan_input_axes"] = std::vector<int64_t>{5};
  EXPECT_THROW(import_spec(graph), Error);
  graph.nodes[0].attributes["num_scan_inputs"] = int64_t{9};
  EXPECT_THROW(import_spec(graph), Error);
}

}  // namespace
}  // namespace heddle::onnx
