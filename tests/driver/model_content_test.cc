#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <protozero/pbf_writer.hpp>

#include "base/file/file.h"
#include "heddle/model.h"
#include "tests/error_of.h"
#include "tests/frontend/model_bytes.h"
#include "tests/frontend/wire_writer.h"

namespace heddle {
namespace {

using onnx::GraphSpec;
using onnx::longs;
using onnx::testing::ModelWriter;
using protozero::pbf_writer;
using ::testing::HasSubstr;

class ModelContent : public ::testing::Test {
 protected:
  ModelContent() { ::setenv("HEDDLE_CACHE_DIR", (dir_.path() + "/cache").c_str(), 1); }
  ~ModelContent() override { ::unsetenv("HEDDLE_CACHE_DIR"); }

  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  void write_data(float value) const {
    const std::vector<float> values = {value, value};
    write("w.bin", {reinterpret_cast<const char*>(values.data()), 8});
  }
  static float first(const std::string& path, std::map<std::string, Tensor> inputs) {
    CompileOptions options;
    options.threads = 1;
    return Model::load(path, options).run(std::move(inputs))[0].values<float>()[0];
  }

  TempDir dir_;
};

Tensor floats(std::vector<float> values) {
  return onnx::floats({static_cast<int64_t>(values.size())}, values);
}

Tensor truth(bool value) {
  const std::array<uint8_t, 1> bytes = {value};
  return Tensor::of<uint8_t>(DType::kBool, {1}, std::span<const uint8_t>(bytes));
}

TEST_F(ModelContent, ExternalDataOfAConstantIsPartOfIt) {
  ModelWriter m;
  m.input("x", onnx::testing::kFloat, {2});
  m.nodes = {{"Constant",
              {},
              {"w"},
              {onnx::testing::tensor_attr("value", onnx::testing::external_tensor({{"location", "w.bin"}}))},
              "",
              ""},
             {"Add", {"x", "w"}, {"y"}, {}, "", ""}};
  m.output("y");
  const std::string path = write("m.onnx", m.bytes());
  write_data(1);
  EXPECT_EQ(first(path, {{"x", floats({0, 0})}}), 1);
  write_data(2);
  EXPECT_EQ(first(path, {{"x", floats({0, 0})}}), 2);
}

TEST_F(ModelContent, SoIsThatOfAGraphInside) {
  ModelWriter branch;
  branch.initializers = {onnx::testing::external_tensor({{"location", "w.bin"}})};
  branch.nodes = {{"Add", {"x", "w"}, {"sum"}, {}, "", ""}};
  branch.output("sum");
  std::string attributes[2];
  for (int i = 0; i < 2; ++i) {
    pbf_writer writer(attributes[i]);
    writer.add_string(1, i == 0 ? "then_branch" : "else_branch");
    writer.add_message(6, branch.graph_bytes());
    writer.add_enum(20, 5);
  }
  ModelWriter m;
  m.input("x", onnx::testing::kFloat, {2});
  m.input("c", onnx::testing::kBool, {1});
  m.nodes = {{"If", {"c"}, {"y"}, {attributes[0], attributes[1]}, "", ""}};
  m.output("y");
  const std::string path = write("m.onnx", m.bytes());
  write_data(1);
  EXPECT_EQ(first(path, {{"x", floats({0, 0})}, {"c", truth(true)}}), 1);
  write_data(2);
  EXPECT_EQ(first(path, {{"x", floats({0, 0})}, {"c", truth(true)}}), 2);
}

// Relu(x) or x + w for w of 4 elements, as the condition says.
std::string branching_model(int64_t elements) {
  const GraphSpec relu{{{"Relu", {"x"}, {"a"}}}, {}, {"a"}};
  const GraphSpec add{{{"Add", {"x", "w"}, {"b"}}}, {}, {"b"}, {{"w", floats({1, 2, 3, 4})}}};
  return onnx::model_bytes({{{"If", {"c"}, {"y"}, {{"then_branch", relu}, {"else_branch", add}}}},
                            {{"x", DType::kF32, {elements}}, {"c", DType::kBool, {1}}},
                            {"y"}},
                           17);
}

TEST_F(ModelContent, ABranchThatDoesNotHoldIsAnErrorOnlyWhereItIsTaken) {
  const std::string path = write("m.onnx", branching_model(5));
  EXPECT_EQ(first(path, {{"x", floats({3, -2, 0, 1, 2})}, {"c", truth(true)}}), 3);
  const Error error = test::error_of([&] { first(path, {{"x", floats({3, -2, 0, 1, 2})}, {"c", truth(false)}}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidNode);
  EXPECT_THAT(error.what(), HasSubstr("[5]"));
  EXPECT_THAT(error.what(), HasSubstr("(Add,"));
}

TEST_F(ModelContent, BranchesThatHoldAreBothThere) {
  const std::string path = write("m.onnx", branching_model(4));
  EXPECT_EQ(first(path, {{"x", floats({3, -2, 0, 1})}, {"c", truth(true)}}), 3);
  EXPECT_EQ(first(path, {{"x", floats({3, -2, 0, 1})}, {"c", truth(false)}}), 4);
}

TEST_F(ModelContent, NoBranchThatHoldsIsAnErrorOfTheImport) {
  const GraphSpec add{{{"Add", {"x", "w"}, {"b"}}}, {}, {"b"}, {{"w", floats({1, 2, 3, 4})}}};
  const std::string path =
      write("m.onnx", onnx::model_bytes({{{"If", {"c"}, {"y"}, {{"then_branch", add}, {"else_branch", add}}}},
                                         {{"x", DType::kF32, {5}}, {"c", DType::kBool, {1}}},
                                         {"y"}},
                                        17));
  EXPECT_EQ(test::error_of([&] { Model::load(path); }).code(), ErrorCode::kInvalidNode);
}

}  // namespace
}  // namespace heddle
