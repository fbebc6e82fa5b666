#include "frontend/onnx/extents/extents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/error_of.h"
#include "wire_writer.h"

namespace heddle::onnx::testing {
namespace {

using ::testing::HasSubstr;

std::string floats_tensor(const std::string& name, const Shape& shape) {
  return raw_tensor<float>(name, kFloat, shape, std::vector<float>(static_cast<size_t>(element_count(shape))));
}

// The shape that an input of a model had when it was imported.
Shape shape_of(const Imported& model, const std::string& input) {
  for (const ir::Graph::Port& port : model.graph.inputs()) {
    if (port.name == input) return model.graph.shape(port.value);
  }
  ADD_FAILURE() << "no input " << input;
  return {};
}

ModelWriter model_of(std::vector<Node> nodes, std::vector<std::string> initializers = {}) {
  ModelWriter m;
  m.nodes = std::move(nodes);
  m.initializers = std::move(initializers);
  m.output("y");
  return m;
}

TEST(Extents, ABatchIsOneAndAPictureHasATypicalSize) {
  ModelWriter m = model_of({{"Conv", {"x", "w"}, {"y"}, {}, "", ""}}, {floats_tensor("w", {2, 3, 7, 7})});
  m.input("x", kFloat, {"batch", 3, "height", "width"});
  const Imported model = import(m.bytes());
  EXPECT_EQ(shape_of(model, "x"), (Shape{1, 3, 224, 224}));
  EXPECT_EQ(
      model.guess,
      "batch = 1, height = 224, width = 224 (guessed; CompileOptions::shapes = {{\"x\", {1, 3, 224, 224}}} sets them)");
}

TEST(Extents, NothingIsGuessedThatIsGiven) {
  ModelWriter m = model_of({{"Relu", {"x"}, {"y"}, {}, "", ""}});
  m.input("x", kFloat, {"n", "m"});
  ImportOptions options;
  options.shapes = {{"x", {2, 5}}};
  const Imported model = import(m.bytes(), options);
  EXPECT_EQ(shape_of(model, "x"), (Shape{2, 5}));
  EXPECT_EQ(model.guess, "");
}

TEST(Extents, AWindowNeedsItsSize) {
  ModelWriter m = model_of({{"Conv", {"x", "w"}, {"y"}, {}, "", ""}}, {floats_tensor("w", {1, 1, 400})});
  m.input("x", kFloat, {"n", 1, "t"});
  EXPECT_GE(shape_of(import(m.bytes()), "x")[2], 400);
}

TEST(Extents, ASumNeedsEqualExtents) {
  ModelWriter m = model_of({{"Add", {"x", "w"}, {"y"}, {}, "", ""}}, {floats_tensor("w", {79, 4})});
  m.input("x", kFloat, {"batch", "tokens", 4});
  EXPECT_EQ(shape_of(import(m.bytes()), "x"), (Shape{1, 79, 4}));
}

TEST(Extents, AReshapeNeedsADivisor) {
  ModelWriter m = model_of({{"Flatten", {"x"}, {"f"}, {}, "", ""}, {"MatMul", {"f", "w"}, {"y"}, {}, "", ""}},
                           {floats_tensor("w", {3 * 28 * 28, 2})});
  m.input("x", kFloat, {"n", 3, "h", "w"});
  EXPECT_EQ(shape_of(import(m.bytes()), "x"), (Shape{1, 3, 28, 28}));
}

TEST(Extents, TwoExtentsOfOneInputAreFoundOneAfterTheOther) {
  ModelWriter m = model_of(
      {{"Slice", {"x", "zero", "one", "two"}, {"s"}, {}, "", ""},
       {"Add", {"x", "a"}, {"p"}, {}, "", ""},
       {"Add", {"p", "b"}, {"y"}, {}, "", ""}},
      {floats_tensor("a", {24, 1}), floats_tensor("b", {1, 100}), raw_tensor<int64_t>("zero", kInt64, {1}, {0}),
       raw_tensor<int64_t>("one", kInt64, {1}, {1}), raw_tensor<int64_t>("two", kInt64, {1}, {1})});
  m.input("x", kFloat, {1, "rows", "columns"});
  EXPECT_EQ(shape_of(import(m.bytes()), "x"), (Shape{1, 24, 100}));
}

TEST(Extents, AFormulaFollowsItsSymbols) {
  ModelWriter m = model_of(
      {{"Concat", {"past", "x"}, {"all"}, {int_attr("axis", 1)}, "", ""}, {"Add", {"all", "mask"}, {"y"}, {}, "", ""}});
  m.input("past", kFloat, {1, "past_len"});
  m.input("x", kFloat, {1, 1});
  m.input("mask", kFloat, {1, "past_len + 1"});
  ImportOptions options;
  options.shapes = {{"past", {1, 6}}};
  EXPECT_EQ(shape_of(import(m.bytes(), options), "mask"), (Shape{1, 7}));
  const Imported model = import(m.bytes());
  EXPECT_EQ(shape_of(model, "mask")[1], shape_of(model, "past")[1] + 1);
  EXPECT_THAT(model.guess, Not(HasSubstr("past_len + 1 =")));
}

TEST(Extents, AQuestionMarkIsNoName) {
  ModelWriter m = model_of({{"Add", {"x", "a"}, {"y"}, {}, "", ""}}, {floats_tensor("a", {21, 34})});
  m.input("x", kFloat, {"?", "?"});
  EXPECT_THAT(import(m.bytes()).guess, HasSubstr("x[1] = 34"));
}

TEST(Extents, TheErrorAfterAGuessNamesTheOption) {
  // No extent fits two tables of different lengths.
  ModelWriter m = model_of({{"Add", {"x", "a"}, {"p"}, {}, "", ""}, {"Add", {"p", "b"}, {"y"}, {}, "", ""}},
                           {floats_tensor("a", {21}), floats_tensor("b", {34})});
  m.input("x", kFloat, {"batch", "steps"});
  const Error error = test::error_of([&] { import(m.bytes()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidNode);
  EXPECT_THAT(error.what(), HasSubstr("steps = "));
  EXPECT_THAT(error.what(), HasSubstr("guessed; CompileOptions::shapes = {{\"x\", {1, "));
}

TEST(Extents, AShapeOfTheNameOfAnExtentNamesTheInput) {
  ModelWriter m = model_of({{"Relu", {"x"}, {"y"}, {}, "", ""}});
  m.input("x", kFloat, {"batch", 3});
  ImportOptions options;
  options.shapes = {{"batch", {4}}};
  const Error error = test::error_of([&] { import(m.bytes(), options); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidInput);
  EXPECT_THAT(error.what(), HasSubstr("extent 'batch': it is an extent of input 'x', [batch,3]"));
  EXPECT_THAT(error.what(), HasSubstr("Give the whole shape: "));
}

TEST(Extents, ABranchThatHoldsIsPreferred) {
  const auto branch = [](const char* name, int64_t window) {
    ModelWriter b = model_of({{"Conv", {"x", "w"}, {"y"}, {}, "", ""}}, {floats_tensor("w", {1, 1, window})});
    b.nodes.push_back({"ReduceMax", {"y"}, {"z"}, {}, "", ""});
    b.outputs = {value_info("z", tensor_type(kFloat, {}, false))};
    std::string bytes;
    pbf_writer writer(bytes);
    writer.add_string(1, name);
    writer.add_message(6, b.graph_bytes());
    writer.add_enum(20, 5);
    return bytes;
  };
  ModelWriter m = model_of({{"If", {"c"}, {"y"}, {branch("then_branch", 8), branch("else_branch", 300)}, "", ""}});
  m.input("x", kFloat, {1, 1, "t"});
  m.input("c", kBool, {});
  const Imported model = import(m.bytes());
  EXPECT_GE(shape_of(model, "x")[2], 300);
  EXPECT_TRUE(model.failing_branches.empty());
  ImportOptions options;
  options.shapes = {{"x", {1, 1, 10}}};
  EXPECT_EQ(import(m.bytes(), options).failing_branches.size(), 1u);
}

// ---- caches of attention: a mask counts the keys from before and the new ones

// Attention of ONNX Runtime with a mask of `mask` keys beside `past` keys from before; inputs in the order of `order`.
ModelWriter attention_with_past(const Dim& tokens, const Dim& mask, const Dim& past, const std::string& order) {
  ModelWriter m =
      model_of({{"Attention", {"x", "w", "b", "mask", "past"}, {"y"}, {int_attr("num_heads", 4)}, "", "com.microsoft"}},
               {floats_tensor("w", {32, 96}), floats_tensor("b", {96})});
  m.opsets.emplace_back("com.microsoft", 1);
  for (const char input : order) {
    if (input == 'x') m.input("x", kFloat, {"b", tokens, 32});
    if (input == 'm') m.input("mask", kInt32, {"b", mask});
    if (input == 'p') m.input("past", kFloat, {2, "b", 4, past, 8});
  }
  return m;
}

void expect_sum(const Imported& model, int64_t tokens, int64_t mask, int64_t past) {
  EXPECT_EQ(mask, tokens + past) << model.guess;
  EXPECT_GT(tokens, 0) << model.guess;
}

TEST(Extents, AMaskIsAsLongAsTheKeysFromBeforeAndTheNewOnes) {
  using Names = std::array<const char*, 3>;
  const std::vector<Names> symbols = {
      {"s", "t", "p"}, {"sequence", "total_sequence", "past_sequence"}, {"z", "a", "m"}};
  for (const char* order : {"xmp", "mxp", "pmx"}) {
    for (const Names& names : symbols) {
      const Imported model = import(attention_with_past(names[0], names[1], names[2], order).bytes());
      const int64_t past = shape_of(model, "past")[3];
      expect_sum(model, shape_of(model, "x")[1], shape_of(model, "mask")[1], past);
      EXPECT_GT(past, 0) << model.guess;
    }
  }
  // One of them or two are fixed.
  for (const auto& [tokens, mask, past] : std::vector<std::array<Dim, 3>>{{"s", int64_t{64}, "p"},
                                                                          {"s", int64_t{1}, "p"},
                                                                          {int64_t{3}, "t", "p"},
                                                                          {int64_t{1}, int64_t{40}, "p"},
                                                                          {"s", int64_t{40}, int64_t{30}},
                                                                          {"s", "t", int64_t{30}}}) {
    const Imported model = import(attention_with_past(tokens, mask, past, "xmp").bytes());
    expect_sum(model, shape_of(model, "x")[1], shape_of(model, "mask")[1], shape_of(model, "past")[3]);
  }
}

TEST(Extents, WhatIsGivenDecidesTheRest) {
  ImportOptions options;
  options.shapes = {{"x", {1, 5, 32}}};
  Imported model = import(attention_with_past("s", "t", "p", "xmp").bytes(), options);
  expect_sum(model, 5, shape_of(model, "mask")[1], shape_of(model, "past")[3]);
  options.shapes = {{"mask", {1, 77}}};
  model = import(attention_with_past("s", "t", "p", "xmp").bytes(), options);
  expect_sum(model, shape_of(model, "x")[1], 77, shape_of(model, "past")[3]);
}

TEST(Extents, MasksOfOtherAttentionsAreSumsToo) {
  for (const char* domain : {"com.microsoft", ""}) {
    const bool microsoft = *domain != 0;
    const std::string cast = int_attr("to", microsoft ? kInt32 : kFloat);
    std::vector<std::string> inputs = {"q", "k", "v", "m"};
    if (microsoft) inputs = {"q", "k", "v", "", "m", ""};
    inputs.insert(inputs.end(), {"pk", "pv"});
    std::vector<std::string> attributes = {int_attr("num_heads", 4)};
    if (!microsoft) attributes = {int_attr("q_num_heads", 4), int_attr("kv_num_heads", 4)};
    ModelWriter m = model_of({{"Cast", {"mask"}, {"m"}, {cast}, "", ""},
                              {microsoft ? "MultiHeadAttention" : "Attention", inputs, {"y"}, attributes, "", domain}});
    m.opsets = {{"", 23}, {"com.microsoft", 1}};
    m.input("pk", kFloat, {"b", 4, "earlier", 8});
    m.input("pv", kFloat, {"b", 4, "earlier_values", 8});
    m.input("mask", kInt64, microsoft ? std::vector<Dim>{"b", "all"} : std::vector<Dim>{"s", "all"});
    for (const char* input : {"q", "k", "v"}) m.input(input, kFloat, {"b", "s", 32});
    const Imported model = import(m.bytes());
    const int64_t past = shape_of(model, "pk")[2];
    expect_sum(model, shape_of(model, "q")[1], shape_of(model, "mask")[1], past);
    EXPECT_EQ(shape_of(model, "pv")[2], past) << model.guess;
  }
}

TEST(Extents, AnExtentIsEmptyOnlyWhereNothingElseFits) {
  // x joins itself and must stay as long.
  ModelWriter m = model_of(
      {{"Concat", {"past", "x"}, {"all"}, {int_attr("axis", 1)}, "", ""}, {"Add", {"all", "x"}, {"y"}, {}, "", ""}});
  m.input("past", kFloat, {1, "past"});
  m.input("x", kFloat, {1, 5});
  EXPECT_EQ(shape_of(import(m.bytes()), "past")[1], 0);
}

}  // namespace
}  // namespace heddle::onnx::testing
