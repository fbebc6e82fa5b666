// Sparse constants and initialisers become dense ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/error_of.h"
#include "wire_writer.h"

namespace heddle::onnx::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string sparse_tensor(const std::string& name, int type, const Shape& dims, const std::vector<T>& values,
                          const std::vector<int64_t>& indices, const Shape& indices_shape) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_message(1, raw_tensor<T>(name, type, {static_cast<int64_t>(values.size())}, values));
  writer.add_message(2, raw_tensor<int64_t>("", kInt64, indices_shape, indices));
  for (const int64_t d : dims) writer.add_int64(3, d);
  return bytes;
}

template <typename T>
std::string linear(const std::string& name, int type, const Shape& dims, const std::vector<T>& values,
                   const std::vector<int64_t>& indices) {
  return sparse_tensor(name, type, dims, values, indices, {static_cast<int64_t>(indices.size())});
}

std::string sparse_attr(const std::string& tensor) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_string(1, "sparse_value");
  writer.add_enum(20, 11);
  writer.add_message(22, tensor);
  return bytes;
}

enum class Place { kAttribute, kInitializer };

// The tensor as two nodes of a model read it.
Tensor read(Place place, int type, const std::string& tensor) {
  ModelWriter m;
  if (place == Place::kAttribute) {
    m.nodes.push_back({"Constant", {}, {"s"}, {sparse_attr(tensor)}, "", ""});
  } else {
    m.sparse_initializers = {tensor};
  }
  m.nodes.push_back({"Identity", {"s"}, {"y"}, {}, "", ""});
  m.nodes.push_back({"Identity", {"s"}, {"again"}, {}, "", ""});
  m.output("y", type);
  m.output("again", type);
  const std::vector<Tensor> results = evaluate(import(m.bytes()), {});
  EXPECT_EQ(results[0].shape(), results[1].shape());
  return results[0];
}

TEST(Sparse, ValuesStandAtTheirIndices) {
  for (const Place place : {Place::kAttribute, Place::kInitializer}) {
    const Tensor square = read(place, kFloat, linear<float>("s", kFloat, {2, 2}, {5, 7}, {1, 2}));
    EXPECT_EQ(square.shape(), (Shape{2, 2}));
    EXPECT_THAT(values_of<float>(square), ElementsAre(0, 5, 7, 0));
    const Tensor pairs =
        read(place, kInt64, sparse_tensor<int64_t>("s", kInt64, {2, 3}, {-4, 9}, {0, 2, 1, 1}, {2, 2}));
    EXPECT_THAT(values_of<int64_t>(pairs), ElementsAre(0, 0, -4, 0, 9, 0));
    const Tensor vector = read(place, kDouble, sparse_tensor<double>("s", kDouble, {4}, {1.5}, {3}, {1, 1}));
    EXPECT_THAT(values_of<double>(vector), ElementsAre(0, 0, 0, 1.5));
    EXPECT_THAT(values_of<int8_t>(read(place, kInt8, linear<int8_t>("s", kInt8, {1, 3}, {-7}, {1}))),
                ElementsAre(0, -7, 0));
    EXPECT_THAT(values_of<uint8_t>(read(place, kBool, linear<uint8_t>("s", kBool, {3}, {1}, {2}))),
                ElementsAre(0, 0, 1));
    EXPECT_THAT(values_of<uint16_t>(read(place, kFloat16, linear<uint16_t>("s", kFloat16, {2, 2}, {0x3c00}, {3}))),
                ElementsAre(0, 0, 0, 0x3c00));
  }
}

TEST(Sparse, AllMayBeZeroOrNoneMayBe) {
  for (const Place place : {Place::kAttribute, Place::kInitializer}) {
    EXPECT_THAT(values_of<float>(read(place, kFloat, linear<float>("s", kFloat, {2, 2}, {}, {}))),
                ElementsAre(0, 0, 0, 0));
    EXPECT_THAT(values_of<float>(read(place, kFloat, linear<float>("s", kFloat, {2}, {3, 4}, {1, 0}))),
                ElementsAre(4, 3));
    EXPECT_EQ(read(place, kFloat, linear<float>("s", kFloat, {0, 2}, {}, {})).shape(), (Shape{0, 2}));
  }
}

TEST(Sparse, WhatDoesNotFitIsAnError) {
  const auto error = [](const std::string& tensor) {
    return std::string(test::error_of([&] { read(Place::kAttribute, kFloat, tensor); }).what());
  };
  EXPECT_THAT(error(linear<float>("s", kFloat, {2, 2}, {5}, {4})), HasSubstr("outside"));
  EXPECT_THAT(error(linear<float>("s", kFloat, {2, 2}, {5}, {-1})), HasSubstr("outside"));
  EXPECT_THAT(error(sparse_tensor<float>("s", kFloat, {2, 2}, {5}, {0, 2}, {1, 2})), HasSubstr("outside"));
  EXPECT_THAT(error(linear<float>("s", kFloat, {2, 2}, {5, 7}, {1, 1})), HasSubstr("same index"));
  EXPECT_THAT(error(linear<float>("s", kFloat, {2, 2}, {5, 7}, {1})), HasSubstr("do not fit"));
  EXPECT_THAT(error(sparse_tensor<float>("s", kFloat, {2, 2}, {5}, {0, 1}, {2, 1})), HasSubstr("do not fit"));
  std::string text, values;
  pbf_writer v(values);
  v.add_int64(1, 1);
  v.add_int32(2, kString);
  v.add_bytes(6, "word");
  pbf_writer writer(text);
  writer.add_message(1, values);
  writer.add_message(2, raw_tensor<int64_t>("", kInt64, {1}, {0}));
  writer.add_int64(3, 2);
  EXPECT_THAT(error(text), HasSubstr("text"));
}

}  // namespace
}  // namespace heddle::onnx::testing
