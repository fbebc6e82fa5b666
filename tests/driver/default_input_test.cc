// Models whose inputs have defaults, and models that take text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file/file.h"
#include "driver/api/model_impl.h"
#include "heddle/model.h"
#include "tests/error_of.h"
#include "tests/frontend/model_bytes.h"

namespace heddle {
namespace {

using onnx::floats;
using onnx::GraphSpec;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DefaultInput : public ::testing::Test {
 protected:
  DefaultInput() { ::setenv("HEDDLE_CACHE_DIR", (dir_.path() + "/cache").c_str(), 1); }
  ~DefaultInput() override { ::unsetenv("HEDDLE_CACHE_DIR"); }

  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }
  // y = x * a + b; a and b have defaults, b is a weight only.
  std::string model() const {
    const GraphSpec graph{{{"Mul", {"x", "a"}, {"m"}}, {"Add", {"m", "b"}, {"y"}}},
                          {{"x", DType::kF32, {2}}, {"a", DType::kF32, {2}}},
                          {"y"},
                          {{"a", floats({2}, {10, 20})}, {"b", floats({2}, {1, 1})}}};
    write_file(path("m.onnx"), onnx::model_bytes(graph, 17), Sync::kNo);
    return path("m.onnx");
  }
  TempDir dir_;
};

std::vector<float> values(const std::vector<Tensor>& outputs) {
  const auto all = outputs.at(0).values<float>();
  return {all.begin(), all.end()};
}

std::vector<std::string> names(const std::vector<PortInfo>& ports) {
  std::vector<std::string> all;
  for (const PortInfo& port : ports) all.push_back(port.name);
  return all;
}

CompileOptions one_thread() {
  CompileOptions options;
  options.threads = 1;
  return options;
}

TEST_F(DefaultInput, RunsWithAndWithoutIt) {
  const Model m = Model::load(model(), one_thread());
  EXPECT_THAT(names(m.inputs()), ElementsAre("x"));
  EXPECT_THAT(names(m.optional_inputs()), ElementsAre("a"));
  EXPECT_EQ(m.optional_inputs()[0].shape, Shape{2});
  const Tensor x = floats({2}, {1, 2});
  for (int again = 0; again < 2; ++again) {
    EXPECT_THAT(values(m.run({{"x", x}})), ElementsAre(11, 41));
    EXPECT_THAT(values(m.run({{"x", x}, {"a", floats({2}, {3, 4})}})), ElementsAre(4, 9));
    EXPECT_THAT(values(m.run({{"x", x}, {"a", floats({2}, {5, 6})}})), ElementsAre(6, 13));
  }
  EXPECT_EQ(m.impl().variants().size(), 1u) << "values of an input make no plan of their own";
  EXPECT_THAT(values(m.impl().run_in_order({x})), ElementsAre(11, 41));
  EXPECT_THAT(error_of([&] { m.run({{"x", x}, {"b", x}}); }).what(), HasSubstr("no such input"));
  EXPECT_THAT(error_of([&] { m.run({{"a", x}}); }).what(), HasSubstr("input x: it is missing"));
  EXPECT_THAT(error_of([&] { m.run({{"x", x}, {"a", onnx::longs({2}, {1, 2})}}); }).what(), HasSubstr("dtype is i64"));
}

TEST_F(DefaultInput, AShapeMakesItAnInputWithADefault) {
  CompileOptions options = one_thread();
  options.shapes["a"] = {2};
  const Model m = Model::load(model(), options);
  EXPECT_THAT(names(m.inputs()), ElementsAre("x", "a"));
  EXPECT_TRUE(m.optional_inputs().empty());
  const Tensor x = floats({2}, {1, 2}), a = floats({2}, {3, 4});
  EXPECT_THAT(values(m.run({{"x", x}, {"a", a}})), ElementsAre(4, 9));
  EXPECT_TRUE(m.impl().variants().empty());
  EXPECT_THAT(values(m.run({{"x", x}})), ElementsAre(11, 41));
  EXPECT_THAT(values(m.impl().run_in_order({x, a})), ElementsAre(4, 9));
}

TEST_F(DefaultInput, APlanFileHoldsForOneOfThem) {
  const Tensor x = floats({2}, {1, 2}), a = floats({2}, {3, 4});
  Model::load(model(), one_thread()).save(path("default.plan"));
  const Model with_default = Model::load(path("default.plan"), one_thread());
  EXPECT_THAT(values(with_default.run({{"x", x}})), ElementsAre(11, 41));
  EXPECT_THAT(names(with_default.optional_inputs()), ElementsAre("a"));
  EXPECT_THAT(error_of([&] {
                with_default.run({{"x", x}, {"a", a}});
              }).what(),
              HasSubstr("CompileOptions::shapes = {{\"a\", {2}}}"));
  CompileOptions options = one_thread();
  options.shapes["a"] = {2};
  Model::load(model(), options).save(path("given.plan"));
  const Model given = Model::load(path("given.plan"), one_thread());
  EXPECT_THAT(values(given.run({{"x", x}, {"a", a}})), ElementsAre(4, 9));
  EXPECT_THAT(error_of([&] { given.run({{"x", x}}); }).what(), HasSubstr("without its default"));
}

TEST_F(DefaultInput, ItsValueMayDecideAShape) {
  const GraphSpec graph{{{"Reshape", {"x", "shape"}, {"y"}}},
                        {{"x", DType::kF32, {4}}, {"shape", DType::kI64, {2}}},
                        {"y"},
                        {{"shape", onnx::longs({2}, {2, 2})}}};
  write_file(path("r.onnx"), onnx::model_bytes(graph, 17), Sync::kNo);
  const Model m = Model::load(path("r.onnx"), one_thread());
  const Tensor x = floats({4}, {1, 2, 3, 4});
  EXPECT_EQ(m.run({{"x", x}})[0].shape(), (Shape{2, 2}));
  EXPECT_EQ(m.run({{"x", x}, {"shape", onnx::longs({2}, {1, 4})}})[0].shape(), (Shape{1, 4}));
  EXPECT_EQ(m.run({{"x", x}, {"shape", onnx::longs({2}, {4, -1})}})[0].shape(), (Shape{4, 1}));
  EXPECT_EQ(m.run({{"x", x}})[0].shape(), (Shape{2, 2}));
}

TEST_F(DefaultInput, TextIsCompiledFor) {
  const GraphSpec graph{
      {{"LabelEncoder",
        {"t"},
        {"label"},
        {{"keys_strings", std::vector<std::string>{"cat", "dog"}}, {"values_floats", std::vector<float>{3, 5}}},
        "ai.onnx.ml"},
       {"Mul", {"x", "label"}, {"y"}}},
      {{"x", DType::kF32, {2}}, {"t", DType::kString, {2}}},
      {"y"}};
  write_file(path("t.onnx"), onnx::model_bytes(graph, 17), Sync::kNo);
  const auto text = [](const std::string& a, const std::string& b) { return Tensor::of_strings({2}, {a, b}); };
  EXPECT_EQ(error_of([&] { Model::load(path("t.onnx"), one_thread()); }).code(), ErrorCode::kUnknownShape);
  CompileOptions options = one_thread();
  options.values["t"] = text("cat", "dog");
  const Tensor x = floats({2}, {1, 2});
  for (int again = 0; again < 2; ++again) {  // the second time from the cache
    const Model m = Model::load(path("t.onnx"), options);
    EXPECT_EQ(m.impl().primary().from_cache.plan, again == 1);
    EXPECT_THAT(names(m.inputs()), ElementsAre("x", "t"));
    EXPECT_THAT(values(m.run({{"x", x}, {"t", text("cat", "dog")}})), ElementsAre(3, 10));
    EXPECT_THAT(values(m.run({{"x", x}, {"t", text("dog", "dog")}})), ElementsAre(5, 10));
    EXPECT_THAT(values(m.impl().run_in_order({x, text("dog", "cat")})), ElementsAre(5, 6));
    EXPECT_THAT(error_of([&] { m.run({{"x", x}}); }).what(), HasSubstr("input t: it is missing"));
  }
  // Another text is another plan.
  options.values["t"] = text("dog", "cat");
  const Model other = Model::load(path("t.onnx"), options);
  EXPECT_FALSE(other.impl().primary().from_cache.plan);
  EXPECT_THAT(values(other.run({{"x", x}, {"t", text("dog", "cat")}})), ElementsAre(5, 6));
  other.save(path("t.plan"));
  const Model plan = Model::load(path("t.plan"), one_thread());
  EXPECT_THAT(values(plan.run({{"x", x}, {"t", text("dog", "cat")}})), ElementsAre(5, 6));
  EXPECT_THAT(error_of([&] { plan.run({{"x", x}, {"t", text("cat", "cat")}}); }).what(), HasSubstr("text"));
}

}  // namespace
}  // namespace heddle
