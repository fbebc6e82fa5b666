// Operators as operator sets 1 to 6 define them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model_bytes.h"
#include "tests/error_of.h"

namespace heddle::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using AttrMap = std::map<std::string, AttrSpec>;

// One node on inputs "0", "1", ...; those of integers are initializers.
ir::Array run(const std::string& op, const std::vector<Tensor>& inputs, const AttrMap& attributes, int64_t opset) {
  NodeSpec node{op, {}, {"y"}, attributes};
  GraphSpec graph{{}, {}, {"y"}, {}};
  std::map<std::string, Tensor> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = std::to_string(i);
    node.inputs.push_back(name);
    if (inputs[i].dtype() == DType::kI64) {
      graph.initializers[name] = inputs[i];
    } else {
      graph.inputs.push_back({name, inputs[i].dtype(), inputs[i].shape()});
      given[name] = inputs[i];
    }
  }
  graph.nodes = {node};
  return run_spec(graph, given, opset).at("y");
}

std::string refusal(const std::string& op, const std::vector<Tensor>& inputs, const AttrMap& attributes,
                    int64_t opset) {
  return test::error_of([&] { run(op, inputs, attributes, opset); }).what();
}

Tensor counting(const Shape& shape) {
  std::vector<float> values;
  for (int64_t i = 0; i < element_count(shape); ++i) values.push_back(static_cast<float>(i));
  return floats(shape, values);
}

Tensor bool_bytes(Shape shape, const std::vector<uint8_t>& values) {
  return Tensor::of<uint8_t>(DType::kBool, std::move(shape), std::span(values));
}

TEST(OldOpset, TheSecondOperandBroadcastsAsAttributesSay) {
  const AttrMap from_0 = {{"broadcast", int64_t{1}}, {"axis", int64_t{0}}};
  const AttrMap from_1 = {{"broadcast", int64_t{1}}, {"axis", int64_t{1}}};
  const AttrMap last = {{"broadcast", int64_t{1}}};
  for (const int64_t opset : {1, 6}) {
    EXPECT_THAT(run("Add", {counting({2, 2}), floats({2}, {10, 20})}, from_0, opset).f(), ElementsAre(10, 11, 22, 23));
    EXPECT_THAT(run("Add", {counting({2, 2}), floats({2}, {10, 20})}, last, opset).f(), ElementsAre(10, 21, 12, 23));
    EXPECT_THAT(run("Mul", {counting({1, 2, 2}), floats({2}, {10, 20})}, from_1, opset).f(),
                ElementsAre(0, 10, 40, 60));
    EXPECT_THAT(run("Sub", {counting({2, 2, 1}), floats({2, 1}, {1, 2})}, from_1, opset).f(),
                ElementsAre(-1, -1, 1, 1));
    EXPECT_THAT(run("Div", {counting({3}), floats({1, 1}, {2})}, last, opset).f(), ElementsAre(0, 0.5, 1));
    EXPECT_THAT(run("Pow", {counting({2, 2}), floats({2}, {1, 2})}, from_0, opset).f(), ElementsAre(0, 1, 4, 9));
    EXPECT_THAT(run("Greater", {counting({2, 2}), floats({2}, {0, 2})}, from_0, opset).i(), ElementsAre(0, 1, 0, 1));
    EXPECT_THAT(run("And", {bool_bytes({2, 2}, {1, 1, 1, 0}), bool_bytes({2}, {0, 1})}, from_0, opset).i(),
                ElementsAre(0, 0, 1, 0));
    EXPECT_THAT(run("Equal", {bool_bytes({2, 2}, {1, 1, 1, 0}), bool_bytes({2}, {1, 0})}, last, opset).i(),
                ElementsAre(1, 0, 1, 1));
    EXPECT_THAT(run("Add", {counting({2}), counting({2})}, {}, opset).f(), ElementsAre(0, 2));
    EXPECT_THAT(refusal("Add", {counting({2, 2}), counting({2})}, {}, opset), HasSubstr("broadcast"));
    EXPECT_THAT(refusal("Add", {counting({2, 2}), counting({3})}, last, opset), HasSubstr("HDL103"));
    EXPECT_THAT(refusal("Add", {counting({2}), counting({2, 2})}, last, opset), HasSubstr("HDL103"));
  }
  // Since 7 both broadcast, as NumPy has it.
  EXPECT_THAT(run("Add", {counting({2}), counting({2, 1})}, {}, 7).f(), ElementsAre(0, 1, 1, 2));
}

TEST(OldOpset, AProductTakesItsSummandAsItIsOrBroadcasts) {
  const Tensor a = floats({2, 1}, {1, 2}), b = floats({1, 2}, {3, 4});
  EXPECT_THAT(run("Gemm", {a, b, floats({2}, {10, 20})}, {{"broadcast", int64_t{1}}}, 6).f(),
              ElementsAre(13, 24, 16, 28));
  EXPECT_THAT(run("Gemm", {a, b, counting({2, 2})}, {}, 1).f(), ElementsAre(3, 5, 8, 11));
  EXPECT_THAT(refusal("Gemm", {a, b, floats({2}, {10, 20})}, {}, 6), HasSubstr("broadcast"));
}

TEST(OldOpset, SlopesAreOfChannels) {
  const Tensor x = floats({1, 2, 2}, {-1, 1, -1, -2});
  EXPECT_THAT(run("PRelu", {x, floats({2}, {10, 20})}, {}, 6).f(), ElementsAre(-10, 1, -20, -40));
  EXPECT_THAT(run("PRelu", {x, floats({1}, {3})}, {}, 1).f(), ElementsAre(-3, 1, -3, -6));
  EXPECT_THAT(run("PRelu", {x, floats({2}, {10, 20})}, {}, 7).f(), ElementsAre(-10, 1, -10, -40));
}

TEST(OldOpset, NormalisationAndDropoutAreThoseOfInference) {
  const Tensor x = counting({1, 2, 2}), one = floats({2}, {1, 1}), zero = floats({2}, {0, 0});
  const AttrMap test = {{"is_test", int64_t{1}}, {"epsilon", 0.0F}};
  for (const int64_t opset : {1, 6}) {
    EXPECT_THAT(run("BatchNormalization", {x, floats({2}, {2, 3}), zero, floats({2}, {0, 1}), one}, test, opset).f(),
                ElementsAre(0, 2, 3, 6));
    EXPECT_THAT(run("Dropout", {x}, {{"is_test", int64_t{1}}, {"ratio", 0.5F}}, opset).f(), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(run("Dropout", {x}, {}, opset).f(), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(refusal("Dropout", {x}, {{"is_test", int64_t{0}}}, opset), HasSubstr("training"));
    EXPECT_THAT(refusal("BatchNormalization", {x, one, zero, zero, one}, {{"is_test", int64_t{0}}}, opset),
                HasSubstr("training"));
  }
  // Statistics of each element of a sample.
  const AttrMap elements = {{"spatial", int64_t{0}}, {"epsilon", 0.0F}};
  const Tensor ones = floats({2, 2}, {1, 1, 1, 1}), means = floats({2, 2}, {0, 1, 1, 1});
  for (const int64_t opset : {6, 8}) {
    EXPECT_THAT(run("BatchNormalization", {x, ones, ones, means, ones}, elements, opset).f(), ElementsAre(1, 1, 2, 3));
    EXPECT_THAT(refusal("BatchNormalization", {x, one, zero, zero, one}, elements, opset), HasSubstr("spatial"));
  }
}

TEST(OldOpset, AttributesThatBecameInputs) {
  const Tensor x = counting({2, 2});
  EXPECT_EQ(run("Reshape", {x}, {{"shape", std::vector<int64_t>{4, -1}}}, 1).shape, (Shape{4, 1}));
  EXPECT_EQ(run("Reshape", {x, longs({1}, {4})}, {}, 5).shape, (Shape{4}));
  EXPECT_THAT(run("Pad", {counting({2})}, {{"paddings", std::vector<int64_t>{1, 0}}, {"value", 5.0F}}, 1).f(),
              ElementsAre(5, 0, 1));
  EXPECT_THAT(run("Pad", {counting({2})}, {{"pads", std::vector<int64_t>{0, 1}}}, 2).f(), ElementsAre(0, 1, 0));
  EXPECT_THAT(run("Tile", {counting({1, 2}), longs({1}, {2}), longs({1}, {1})}, {}, 1).f(), ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(run("Tile", {x, longs({2}, {1, 3})}, {}, 6).shape, (Shape{2, 6}));
  EXPECT_THAT(run("Split", {counting({3}), longs({2}, {1, 2})}, {}, 1).f(), ElementsAre(0));
  EXPECT_THAT(run("Split", {counting({3})}, {{"split", std::vector<int64_t>{2, 1}}}, 2).f(), ElementsAre(0, 1));
  EXPECT_EQ(run("Concat", {x, x}, {}, 1).shape, (Shape{2, 4}));
  EXPECT_THAT(run("Cast", {floats({2}, {1.5, -2.5})}, {{"to", std::string("INT32")}}, 1).i(), ElementsAre(1, -2));
  EXPECT_EQ(run("Cast", {x}, {{"to", std::string("FLOAT16")}}, 5).dtype, DType::kF16);
  EXPECT_THAT(refusal("Cast", {x}, {{"to", std::string("QUATERNION")}}, 1), HasSubstr("QUATERNION"));
  EXPECT_THAT(run("Upsample", {counting({1, 1, 1, 2})}, {{"height_scale", 1.0F}, {"width_scale", 2.0F}}, 1).f(),
              ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(run("GlobalLpPool", {floats({1, 1, 2}, {3, 4})}, {{"p", 2.0F}}, 1).f(), ElementsAre(5));
  EXPECT_THAT(
      run("Slice", {counting({4})}, {{"starts", std::vector<int64_t>{1}}, {"ends", std::vector<int64_t>{3}}}, 1).f(),
      ElementsAre(1, 2));
  EXPECT_THAT(run("Relu", {floats({2}, {-1, 1})}, {{"consumed_inputs", std::vector<int64_t>{0}}}, 1).f(),
              ElementsAre(0, 1));
}

TEST(OldOpset, ARecurrenceIgnoresWhetherItsSequenceIsAskedFor) {
  const AttrMap attributes = {{"hidden_size", int64_t{1}}, {"output_sequence", int64_t{1}}};
  const Tensor x = floats({2, 1, 1}, {1, 2}), w = floats({1, 1, 1}, {1}), r = floats({1, 1, 1}, {0});
  for (const int64_t opset : {1, 6}) {
    EXPECT_NEAR(run("RNN", {x, w, r}, attributes, opset).f()[1], std::tanh(2.0), 1e-6);
  }
}

}  // namespace
}  // namespace heddle::onnx
