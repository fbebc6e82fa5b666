#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "wire_writer.h"

namespace heddle::onnx::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Imports and returns the error's text; the code must match.
std::string error_of(const std::string& bytes, ErrorCode code, const ImportOptions& options = {}) {
  try {
    import(bytes, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "the import succeeded";
  return {};
}

ModelWriter relu_model() {
  ModelWriter m;
  m.input("x", kFloat, {2, 3});
  m.nodes = {{"Relu", {"x"}, {"y"}, {}, "act", ""}};
  m.output("y");
  return m;
}

TEST(BadModel, NotProtobuf) {
  EXPECT_THAT(error_of("", ErrorCode::kMalformedModel), HasSubstr("empty"));
  EXPECT_THAT(error_of("This is a text file, not a model.", ErrorCode::kMalformedModel), HasSubstr("not"));
  EXPECT_THAT(error_of(std::string(64, '\0'), ErrorCode::kMalformedModel), HasSubstr("protobuf"));
  const std::string whole = relu_model().bytes();
  for (size_t size = 1; size < whole.size(); ++size) EXPECT_THROW(import(whole.substr(0, size)), Error) << size;
}

TEST(BadModel, MissingFile) {
  try {
    import_model("/nonexistent/model.onnx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFile);
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/model.onnx"));
  }
}

TEST(BadModel, Versions) {
  ModelWriter m = relu_model();
  m.ir_version = 99;
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel), HasSubstr("ir_version is 99"));
  m = relu_model();
  m.opsets = {{"", 28}};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kUnsupportedOperator),
              AllOf(HasSubstr("operator set 28"), HasSubstr("1 to 27")));
  m.opsets = {};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel), HasSubstr("no operator set"));
}

TEST(BadModel, ADomainWithoutOperatorSetIsNamedWithItsOperators) {
  // Heddle has the first operator and lacks the second.
  ModelWriter m = relu_model();
  m.nodes[0] = {"BiasGelu", {"x", "x"}, {"y"}, {}, "act", "com.microsoft"};
  EXPECT_THAT(
      error_of(m.bytes(), ErrorCode::kMalformedModel),
      AllOf(HasSubstr("no operator set for the domain com.microsoft"), HasSubstr("act"), HasSubstr("BiasGelu")));
  m.nodes[0] = {"Relu", {"x"}, {"y"}, {}, "act", "my.domain"};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kUnsupportedOperator),
              AllOf(HasSubstr("my.domain.Relu at act"), HasSubstr("imports no operator set for my.domain")));
  m.nodes.push_back({"Foo", {"y"}, {"z"}, {}, "", "com.microsoft"});
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kUnsupportedOperator),
              AllOf(HasSubstr("my.domain.Relu"), HasSubstr("com.microsoft.Foo")));
}

TEST(BadModel, FilesOfOtherKindsAreNamed) {
  using namespace std::string_literals;
  const std::pair<std::string, const char*> kinds[] = {
      {"\x1f\x8b\x08\0\0\0\0\0"s, "gzip"},
      {"PK\x03\x04\x14\0"s, "zip"},
      {"\x28\xb5\x2f\xfd\x24"s, "zstd"},
      {"\x18\0\0\0ORTM"s + std::string(64, '\0'), "ONNX Runtime"},
      {"\x1c\0\0\0TFL3"s + std::string(64, '\0'), "TensorFlow Lite"},
      {"\x89HDF\r\n\x1a\n"s, "HDF5"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git lfs pull"},
      {"\x0d\0\0\0\0\0\0\0{\"a\":{\"b\":1}}"s, "safetensors"},
      {"\x80\x02}q\0."s, "pickle"},
      {"GGUF\x03\0\0\0"s, "GGUF"},
      {"\x93NUMPY\x01\0"s, "NumPy"},
      {"<!DOCTYPE html><html>"s, "HTML"},
      {"{\"graph\": []}"s, "JSON"},
      {"ir_version: 8\n"s, "textproto"},
      {"\x08\x01\x12\x10saved_model_main"s, "SavedModel"},
      {"\x0a\x0a\x0a\x01x\x12\x05Const"s, "TensorFlow"},
  };
  for (const auto& [bytes, what] : kinds) {
    EXPECT_THAT(error_of(bytes, ErrorCode::kMalformedModel), HasSubstr(what));
  }
  // A producer may be called like a format.
  ModelWriter m = relu_model();
  std::string named;
  pbf_writer(named).add_int64(1, 8);
  pbf_writer(named).add_string(2, "ORTM writer");
  const std::string rest = m.bytes();
  EXPECT_EQ(import(named + rest).graph.outputs().size(), 1u);
}

TEST(BadModel, AllUnsupportedOperatorsAtOnce) {
  ModelWriter m = relu_model();
  m.nodes = {{"Foo", {"x"}, {"a"}, {}, "first", ""},
             {"Bar", {"a"}, {"b"}, {}, "", ""},
             {"Foo", {"b"}, {"y"}, {}, "third", ""}};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kUnsupportedOperator),
              AllOf(HasSubstr("Foo version 17 at first, third"), HasSubstr("Bar version 17 at Bar_1")));
}

TEST(BadModel, Names) {
  ModelWriter m = relu_model();
  m.nodes[0].inputs = {"nowhere"};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel),
              AllOf(HasSubstr("node 'act' (Relu)"), HasSubstr("'nowhere'"), HasSubstr("initializer")));
  m = relu_model();
  m.outputs = {value_info("z", tensor_type(kFloat, {}))};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel), HasSubstr("output 'z'"));
  m = relu_model();
  m.nodes.push_back({"Abs", {"x"}, {"y"}, {}, "again", ""});
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel), AllOf(HasSubstr("again"), HasSubstr("defined twice")));
  m = relu_model();
  m.input("x", kFloat, {1});
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel), HasSubstr("two inputs have this name"));
  m = relu_model();
  m.output("y");
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel), HasSubstr("two outputs have this name"));
}

TEST(BadModel, Cycle) {
  ModelWriter m = relu_model();
  m.nodes = {{"Add", {"x", "b"}, {"a"}, {}, "one", ""}, {"Relu", {"a"}, {"b"}, {}, "two", ""}};
  m.outputs = {value_info("b", tensor_type(kFloat, {}))};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel),
              AllOf(HasSubstr("cycle"), HasSubstr("one (Add)"), HasSubstr("two (Relu)")));
}

TEST(BadModel, InitializersThatDoNotFit) {
  ModelWriter m = relu_model();
  m.nodes = {{"Add", {"x", "w"}, {"y"}, {}, "sum", ""}};
  m.initializers = {raw_tensor<float>("w", kFloat, {3}, {1, 2})};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel),
              AllOf(HasSubstr("'w'"), HasSubstr("8 bytes"), HasSubstr("f32[3] takes 12")));
  m.initializers = {raw_tensor<float>("w", 99, {1}, {1})};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel), HasSubstr("99 is no element type"));
  m.initializers = {raw_tensor<float>("w", 14, {1}, {1, 2})};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kUnsupportedType), HasSubstr("complex"));
  m.initializers = {raw_tensor<float>("w", kFloat, {-3}, {1})};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel), HasSubstr("negative"));
  m.initializers = {raw_tensor<float>("w", kFloat, {int64_t{1} << 40, int64_t{1} << 40}, {1})};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel), HasSubstr("overflows"));
  std::string empty;
  {
    pbf_writer w(empty);
    w.add_int64(1, 3);
    w.add_int32(2, kFloat);
    w.add_string(8, "w");
  }
  m.initializers = {empty};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMissingData), HasSubstr("0 values given for f32[3]"));
}

TEST(BadModel, ExternalData) {
  ModelWriter m = relu_model();
  m.nodes = {{"Add", {"x", "w"}, {"y"}, {}, "sum", ""}};
  m.inputs = {value_info("x", tensor_type(kFloat, {2}))};
  for (const char* outside : {"../weights.bin", "/etc/passwd", "a/../../b", ""}) {
    m.initializers = {external_tensor({{"location", outside}, {"offset", "0"}})};
    EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMissingData), HasSubstr("not below the model's folder")) << outside;
  }
  m.initializers = {external_tensor({{"location", "no_such_file.bin"}, {"offset", "0"}})};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMissingData), HasSubstr("no_such_file.bin"));
  m.initializers = {external_tensor({{"location", "no_such_file.bin"}, {"offset", "12x"}})};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel), HasSubstr("'12x', not a number"));
}

TEST(BadModel, Inputs) {
  ModelWriter m = relu_model();
  ImportOptions options;
  options.shapes = {{"x", {2, 4}}};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kInvalidInput, options),
              AllOf(HasSubstr("input 'x'"), HasSubstr("[2,4]"), HasSubstr("[2,3]")));
  options.shapes = {{"x", {2, 3, 1}}};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kInvalidInput, options), HasSubstr("[2,3,1]"));
  options.shapes = {{"z", {2, 3}}};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kInvalidInput, options), AllOf(HasSubstr("'z'"), HasSubstr("are: x")));
  options = {};
  options.values = {{"x", longs({2, 3}, {1, 2, 3, 4, 5, 6})}};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kInvalidInput, options), AllOf(HasSubstr("i64[2,3]"), HasSubstr("f32")));
  m.inputs = {value_info("x", tensor_type(kFloat, {}, false))};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kUnknownShape), HasSubstr("CompileOptions::shapes[\"x\"]"));
}

TEST(BadModel, NodesThatBreakTheirRules) {
  ModelWriter m = relu_model();
  m.nodes = {{"Concat", {"x", "x"}, {"y"}, {}, "join", ""}};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kInvalidNode),
              AllOf(HasSubstr("join"), HasSubstr("Concat"), HasSubstr("f32[2,3]"), HasSubstr("'axis' is missing")));
  m.nodes[0].attributes = {int_attr("axis", 5)};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kInvalidNode), AllOf(HasSubstr("join"), HasSubstr("axis 5")));
  m.nodes[0].attributes = {ints_attr("axis", {1})};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kInvalidNode), HasSubstr("'axis' is not an integer"));
  m.nodes = {{"Add", {"x"}, {"y"}, {}, "sum", ""}};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kInvalidNode), AllOf(HasSubstr("sum"), HasSubstr("input 1 is missing")));
  m.initializers = {raw_tensor<float>("w", kFloat, {4}, {1, 2, 3, 4})};
  m.nodes = {{"Add", {"x", "w"}, {"y"}, {}, "sum", ""}};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kInvalidNode),
              AllOf(HasSubstr("sum"), HasSubstr("[2,3]"), HasSubstr("[4]")));
  m.nodes = {{"Relu", {"x"}, {"y", "extra"}, {}, "act", ""}};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kInvalidNode), AllOf(HasSubstr("act"), HasSubstr("no output 1")));
}

TEST(BadModel, AnOperandWithoutTheDimensionThatItsOperatorCountsOn) {
  ModelWriter m = relu_model();
  m.opsets = {{"", 23}};
  m.inputs = {value_info("x", tensor_type(kFloat, {2, 3, 5, 4}))};
  m.initializers = {raw_tensor<float>("angle", kFloat, {2}, {1, 2})};
  m.nodes = {{"RotaryEmbedding", {"x", "angle", "angle"}, {"y"}, {}, "turn", ""}};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kInvalidNode),
              AllOf(HasSubstr("turn"), HasSubstr("[2]"), HasSubstr("no dimension 2")));
}

TEST(BadModel, HugeConstantsAreNotComputed) {
  ModelWriter m = relu_model();
  m.initializers = {raw_tensor<int64_t>("s", kInt64, {2}, {int64_t{1} << 24, int64_t{1} << 24})};
  m.nodes = {{"ConstantOfShape", {"s"}, {"c"}, {}, "", ""}, {"NonZero", {"c"}, {"y"}, {}, "count", ""}};
  m.outputs = {value_info("y", tensor_type(kInt64, {}, false))};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kOutOfMemory), HasSubstr("too large"));
}

TEST(BadModel, FunctionsThatCallThemselves) {
  ModelWriter m = relu_model();
  m.opsets.emplace_back("local", 1);
  m.functions = {{"F", "local", {"a"}, {"b"}, {}, {{"F", {"a"}, {"b"}, {}, "inner", "local"}}}};
  m.nodes = {{"F", {"x"}, {"y"}, {}, "outer", "local"}};
  EXPECT_THAT(error_of(m.bytes(), ErrorCode::kMalformedModel), HasSubstr("functions call each other"));
}

TEST(BadModel, DeepNesting) {
  std::string graph;
  for (int i = 0; i < 2000; ++i) {
    std::string attribute, node, outer;
    {
      pbf_writer w(attribute);
      w.add_string(1, "then_branch");
      w.add_message(6, graph);
    }
    {
      pbf_writer w(node);
      w.add_string(4, "If");
      w.add_message(5, attribute);
    }
    pbf_writer w(outer);
    w.add_message(1, node);
    graph = outer;
  }
  std::string model;
  pbf_writer w(model);
  w.add_int64(1, 8);
  w.add_message(7, graph);
  EXPECT_THAT(error_of(model, ErrorCode::kLimit), HasSubstr("nested"));
}

// Every mutation imports, or fails with an Error; nothing else.
TEST(BadModel, MutatedBytes) {
  ModelWriter m;
  m.input("x", kFloat, {"N", 3, 8, 8});
  m.initializers = {raw_tensor<float>("w", kFloat, {2, 3, 3, 3}, std::vector<float>(54, 0.5f)),
                    raw_tensor<int64_t>("shape", kInt64, {2}, {0, -1})};
  m.nodes = {{"Conv", {"x", "w"}, {"c"}, {ints_attr("pads", {1, 1, 1, 1})}, "conv", ""},
             {"MaxPool", {"c"}, {"p"}, {ints_attr("kernel_shape", {2, 2}), ints_attr("strides", {2, 2})}, "", ""},
             {"Reshape", {"p", "shape"}, {"r"}, {}, "flat", ""},
             {"Softmax", {"r"}, {"y"}, {int_attr("axis", 1)}, "", ""}};
  m.output("y");
  const std::string good = m.bytes();
  EXPECT_NO_THROW(import(good));
  std::mt19937 random(20260731);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) bytes[random() % bytes.size()] ^= static_cast<char>(1 << (random() % 8));
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    try {
      import(bytes);
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << "round " << round << ": " << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace heddle::onnx::testing
