#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "base/file/file.h"
#include "wire_writer.h"

namespace heddle::onnx::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Import, SymbolicDimensionsAgreeAndTheOthersAreGuessed) {
  ModelWriter m;
  m.input("a", kFloat, {"N", 3});
  m.input("b", kFloat, {"N", "M"});
  m.nodes = {{"Concat", {"a", "b"}, {"y"}, {int_attr("axis", 1)}, "", ""}};
  m.output("y");
  ImportOptions options;
  options.shapes = {{"a", {5, 3}}};
  const Imported given = import(m.bytes(), options);
  ASSERT_EQ(given.assumed.size(), 1u);
  EXPECT_EQ(given.assumed[0].input, "b");
  EXPECT_EQ(given.assumed[0].symbol, "M");
  EXPECT_EQ(given.graph.shape(given.graph.outputs()[0].value), (Shape{5, 3 + given.assumed[0].value}));
  EXPECT_EQ(import(m.bytes()).assumed.size(), 3u);
}

TEST(Import, OriginsAndShapesOfScalarsAndEmptyTensors) {
  ModelWriter m;
  m.input("x", kFloat, {});
  m.input("e", kFloat, {0, 3});
  m.nodes = {{"Add", {"x", "e"}, {"s"}, {}, "sum", ""}, {"ReduceSum", {"s"}, {"y"}, {int_attr("keepdims", 0)}, "", ""}};
  m.output("y");
  const Imported model = import(m.bytes());
  std::vector<std::string> names;
  for (const ir::Origin& o : model.graph.origins()) names.push_back(o.node + ":" + o.op_type);
  EXPECT_THAT(names, ElementsAre("sum:Add", "ReduceSum_1:ReduceSum"));
  const auto y = evaluate(model, {floats({}, {2}), floats({0, 3}, {})});
  EXPECT_EQ(y[0].shape(), Shape{});
  EXPECT_THAT(values_of<float>(y[0]), ElementsAre(0));
}

// The target of a Reshape is computed from the input's shape, as exporters write it.
TEST(Import, ShapeArithmeticFolds) {
  ModelWriter m;
  m.input("x", kFloat, {2, 3, 4});
  m.initializers = {raw_tensor<int64_t>("zero", kInt64, {}, {0}), raw_tensor<int64_t>("minus", kInt64, {1}, {-1}),
                    raw_tensor<int64_t>("axes", kInt64, {1}, {0})};
  m.nodes = {{"Shape", {"x"}, {"s"}, {}, "", ""},
             {"Gather", {"s", "zero"}, {"n"}, {}, "", ""},
             {"Unsqueeze", {"n", "axes"}, {"n1"}, {}, "", ""},
             {"Concat", {"n1", "minus"}, {"target"}, {int_attr("axis", 0)}, "", ""},
             {"Reshape", {"x", "target"}, {"y"}, {}, "", ""}};
  m.output("y");
  const Imported model = import(m.bytes());
  EXPECT_EQ(model.graph.shape(model.graph.outputs()[0].value), (Shape{2, 12}));
  EXPECT_TRUE(model.specialised_inputs.empty());
}

TEST(Import, InputsThatDecideShapesAreSpecialised) {
  ModelWriter m;
  m.input("x", kFloat, {6});
  m.input("shape", kInt64, {2});
  m.input("other", kInt64, {1});
  m.nodes = {{"Reshape", {"x", "shape"}, {"y"}, {}, "fold", ""}, {"Neg", {"other"}, {"z"}, {}, "", ""}};
  m.output("y");
  m.output("z", kInt64);
  try {
    import(m.bytes());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnknownShape);
    EXPECT_THAT(error.what(), HasSubstr("fold"));
    EXPECT_THAT(error.what(), HasSubstr("input shape"));
  }
  ImportOptions options;
  options.values = {{"shape", longs({2}, {2, -1})}, {"other", longs({1}, {7})}};
  const Imported model = import(m.bytes(), options);
  EXPECT_THAT(model.specialised_inputs, ElementsAre("shape"));
  EXPECT_EQ(model.graph.inputs().size(), 3u);
  EXPECT_EQ(model.graph.shape(model.graph.outputs()[0].value), (Shape{2, 3}));
}

TEST(Import, NodesMayComeInAnyOrder) {
  ModelWriter m;
  m.input("x", kFloat, {2});
  m.nodes = {{"Neg", {"a"}, {"y"}, {}, "", ""}, {"Abs", {"x"}, {"a"}, {}, "", ""}};
  m.output("y");
  EXPECT_THAT(values_of<float>(evaluate(import(m.bytes()), {floats({2}, {-3, 4})})[0]), ElementsAre(-3, -4));
}

TEST(Import, TheNewestVersionOfTheFormat) {
  ModelWriter m;
  m.ir_version = 14;
  m.input("x", kFloat, {2});
  m.nodes = {{"Neg", {"x"}, {"y"}, {}, "", ""}};
  m.output("y");
  EXPECT_THAT(values_of<float>(evaluate(import(m.bytes()), {floats({2}, {-3, 4})})[0]), ElementsAre(3, -4));
}

TEST(Import, InitializersListedAsInputsAreConstants) {
  ModelWriter m;
  m.ir_version = 3;
  m.input("x", kFloat, {2});
  m.input("w", kFloat, {2});
  m.initializers = {raw_tensor<float>("w", kFloat, {2}, {10, 20})};
  m.nodes = {{"Add", {"x", "w"}, {"y"}, {}, "", ""}};
  m.output("y");
  const Imported model = import(m.bytes());
  EXPECT_EQ(model.graph.inputs().size(), 1u);
  EXPECT_THAT(values_of<float>(evaluate(model, {floats({2}, {1, 2})})[0]), ElementsAre(11, 22));
}

TEST(Import, FunctionsExpandWithTheirAttributes) {
  ModelWriter m;
  m.opsets.emplace_back("local", 1);
  m.functions = {
      {"Total",
       "local",
       {"a"},
       {"b"},
       {"keep"},
       {{"Abs", {"a"}, {"t"}, {}, "", ""}, {"ReduceSum", {"t"}, {"b"}, {ref_attr("keepdims", "keep", 2)}, "sum", ""}}}};
  m.input("x", kFloat, {2, 2});
  m.nodes = {{"Total", {"x"}, {"y"}, {int_attr("keep", 0)}, "call", "local"},
             {"Total", {"x"}, {"z"}, {}, "call2", "local"}};
  m.output("y");
  m.output("z");
  const Imported model = import(m.bytes());
  const auto results = evaluate(model, {floats({2, 2}, {1, -2, 3, -4})});
  EXPECT_EQ(results[0].shape(), Shape{});
  EXPECT_EQ(results[1].shape(), (Shape{1, 1}));
  EXPECT_THAT(values_of<float>(results[0]), ElementsAre(10));
  EXPECT_EQ(model.graph.origins()[1].node, "call/sum");
}

TEST(Import, AxesMovedFromAttributeToInput) {
  for (const int64_t opset : {7, 11, 12, 13, 17, 21, 25}) {
    ModelWriter m;
    m.opsets = {{"", opset}};
    m.input("x", kFloat, {1, 2, 1});
    m.output("y");
    if (opset < 13) {
      m.nodes = {{"Squeeze", {"x"}, {"y"}, {ints_attr("axes", {0})}, "", ""}};
    } else {
      m.initializers = {raw_tensor<int64_t>("axes", kInt64, {1}, {-3})};
      m.nodes = {{"Squeeze", {"x", "axes"}, {"y"}, {}, "", ""}};
    }
    const Imported model = import(m.bytes());
    EXPECT_EQ(model.graph.shape(model.graph.outputs()[0].value), (Shape{2, 1})) << opset;
  }
}

// Before opset 13 softmax runs over all dimensions from the axis on.
TEST(Import, SoftmaxOfTheOldKind) {
  for (const int64_t opset : {11, 13}) {
    ModelWriter m;
    m.opsets = {{"", opset}};
    m.input("x", kFloat, {1, 2, 2});
    m.nodes = {{"Softmax", {"x"}, {"y"}, {int_attr("axis", 1)}, "", ""}};
    m.output("y");
    const auto y = values_of<float>(evaluate(import(m.bytes()), {floats({1, 2, 2}, {0, 0, 0, 0})})[0]);
    EXPECT_FLOAT_EQ(y[0], opset < 13 ? 0.25f : 0.5f);
  }
}

TEST(Import, TextIsComputedAtImport) {
  std::string tensor;
  {
    pbf_writer w(tensor);
    w.add_int64(1, 3);
    w.add_int32(2, kString);
    for (const char* s : {"a", "b", "c"}) w.add_string(6, s);
    w.add_string(8, "names");
  }
  ModelWriter m;
  m.input("at", kInt64, {2});
  m.initializers = {tensor};
  m.nodes = {{"Gather", {"names", "at"}, {"y"}, {}, "pick", ""}};
  m.output("y", kString);
  ImportOptions options;
  options.values = {{"at", longs({2}, {2, 0})}};
  const Imported model = import(m.bytes(), options);
  ASSERT_EQ(model.outputs.size(), 1u);
  EXPECT_EQ(model.outputs[0].kind, OutputInfo::Kind::kStrings);
  EXPECT_THAT(model.outputs[0].strings.strings(), ElementsAre("c", "a"));
}

Tensor only_constant(const std::string& tensor, const std::string& folder = "") {
  ModelWriter m;
  m.initializers = {tensor};
  m.nodes = {{"Identity", {"w"}, {"y"}, {}, "", ""}};
  m.output("y");
  const Imported model = import(m.bytes(), {}, folder);
  return *model.graph.constant_of(model.graph.outputs()[0].value);
}

TEST(TensorData, TypedFields) {
  std::string bytes;
  pbf_writer w(bytes);
  w.add_int64(1, 3);
  w.add_int32(2, kInt8);
  w.add_string(8, "w");
  const std::vector<int32_t> values = {-1, 2, 127};
  w.add_packed_int32(5, values.begin(), values.end());
  EXPECT_THAT(values_of<int8_t>(only_constant(bytes)), ElementsAre(-1, 2, 127));
}

TEST(TensorData, PackedFourBitElements) {
  const Tensor t = only_constant(raw_tensor<uint8_t>("w", kInt4, {3}, {0xf1, 0x08}));
  EXPECT_EQ(t.dtype(), DType::kI4);
  EXPECT_THAT(values_of<int8_t>(t), ElementsAre(1, -1, -8));
}

// The data of a tensor lies at any offset of the file; a longer name before it moves it on.
TEST(TensorData, UnalignedBytesAreCopied) {
  for (size_t shift = 0; shift < 4; ++shift) {
    ModelWriter m;
    m.initializers = {raw_tensor<float>("w", kFloat, {2}, {1.5f, -2})};
    m.nodes = {{"Identity", {"w"}, {"y"}, {}, std::string(shift, 'n'), ""}};
    m.output("y");
    const Imported model = import(m.bytes());
    const Tensor* t = model.graph.constant_of(model.graph.outputs()[0].value);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t->data()) % alignof(float), 0u);
    EXPECT_THAT(values_of<float>(*t), ElementsAre(1.5f, -2));
  }
}

TEST(TensorData, ExternalFileIsMapped) {
  const TempDir folder;
  const std::vector<float> data = {0, 1, 2, 3, 4};
  std::ofstream(folder.path() + "/weights.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size() * sizeof(float)));
  const auto tensor = [](const std::string& offset, const std::string& length) {
    return external_tensor({{"location", "weights.bin"}, {"offset", offset}, {"length", length}});
  };
  EXPECT_THAT(values_of<float>(only_constant(tensor("8", "8"), folder.path())), ElementsAre(2, 3));
  EXPECT_THAT(values_of<float>(only_constant(tensor("6", "8"), folder.path())), ::testing::SizeIs(2));
  EXPECT_THROW(only_constant(tensor("16", "8"), folder.path()), Error);
  EXPECT_THROW(only_constant(tensor("18446744073709551612", "8"), folder.path()), Error);
}

}  // namespace
}  // namespace heddle::onnx::testing
