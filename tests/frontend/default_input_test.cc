// Inputs that have a default: an initialiser of the same name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/error_of.h"
#include "wire_writer.h"

namespace heddle::onnx::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = x + a, where a is [10, 20] by default.
ModelWriter sum(int64_t ir_version = 8) {
  ModelWriter m;
  m.ir_version = ir_version;
  m.input("x", kFloat, {2});
  m.input("a", kFloat, {"n"});
  m.initializers = {raw_tensor<float>("a", kFloat, {2}, {10, 20})};
  m.nodes = {{"Add", {"x", "a"}, {"y"}, {}, "", ""}};
  m.output("y");
  return m;
}

ImportOptions with_shape(const std::string& name, const Shape& shape) {
  ImportOptions options;
  options.shapes[name] = shape;
  return options;
}

TEST(DefaultInput, IsAConstantUnlessItIsGiven) {
  for (const int64_t ir_version : {3, 4, 8}) {
    const Imported model = import(sum(ir_version).bytes());
    EXPECT_EQ(model.graph.inputs().size(), 1u);
    EXPECT_EQ(model.guess, "");
    ASSERT_EQ(model.defaults.size(), 1u);
    EXPECT_EQ(model.defaults[0].name, "a");
    EXPECT_EQ(model.defaults[0].shape, Shape{2});
    EXPECT_THAT(values_of<float>(evaluate(model, {floats({2}, {1, 2})})[0]), ElementsAre(11, 22));
  }
}

TEST(DefaultInput, IsAnInputWhereItIsGiven) {
  for (const int64_t ir_version : {3, 4, 8}) {
    const Imported model = import(sum(ir_version).bytes(), with_shape("a", {2}));
    ASSERT_EQ(model.graph.inputs().size(), 2u);
    EXPECT_EQ(model.defaults.size(), 1u);
    EXPECT_THAT(values_of<float>(evaluate(model, {floats({2}, {1, 2}), floats({2}, {5, 6})})[0]), ElementsAre(6, 8));
  }
  // It may have another shape than its default, as far as the model's type of it allows.
  const Imported one = import(sum().bytes(), with_shape("a", {1}));
  EXPECT_THAT(values_of<float>(evaluate(one, {floats({2}, {1, 2}), floats({1}, {5})})[0]), ElementsAre(6, 7));
  EXPECT_EQ(test::error_of([&] {
              import(sum().bytes(), with_shape("a", {2, 2, 2}));
            }).code(),
            ErrorCode::kInvalidInput);
}

TEST(DefaultInput, MayDecideAShape) {
  ModelWriter m;
  m.input("x", kFloat, {4});
  m.input("shape", kInt64, {2});
  m.initializers = {raw_tensor<int64_t>("shape", kInt64, {2}, {2, 2})};
  m.nodes = {{"Reshape", {"x", "shape"}, {"y"}, {}, "", ""}};
  m.output("y");
  EXPECT_EQ(evaluate(import(m.bytes()), {floats({4}, {1, 2, 3, 4})})[0].shape(), (Shape{2, 2}));
  ImportOptions options = with_shape("shape", {2});
  EXPECT_EQ(test::error_of([&] { import(m.bytes(), options); }).code(), ErrorCode::kUnknownShape);
  options.values["shape"] = longs({2}, {1, 4});
  const Imported given = import(m.bytes(), options);
  EXPECT_THAT(given.specialised_inputs, ElementsAre("shape"));
  EXPECT_EQ(given.graph.shape(given.graph.outputs()[0].value), (Shape{1, 4}));
}

TEST(DefaultInput, AnotherNameIsNoInput) {
  EXPECT_THAT(test::error_of([&] { import(sum().bytes(), with_shape("b", {2})); }).what(), HasSubstr("no input"));
  // An initialiser that is no input cannot be given.
  ModelWriter m = sum();
  m.inputs.pop_back();
  EXPECT_THAT(test::error_of([&] { import(m.bytes(), with_shape("a", {2})); }).what(), HasSubstr("no input"));
}

}  // namespace
}  // namespace heddle::onnx::testing
