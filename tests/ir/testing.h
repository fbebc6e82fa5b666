#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/reference/array.h"
#include "ir/reference/eval.h"

namespace heddle::ir::testing {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline Array reals(Shape shape, std::vector<double> values, DType dtype = DType::kF64) {
  Array array(dtype, std::move(shape));
  EXPECT_EQ(array.f().size(), values.size());
  array.f() = std::move(values);
  return array;
}

inline Array integers(Shape shape, std::vector<int64_t> values, DType dtype = DType::kI64) {
  Array array(dtype, std::move(shape));
  EXPECT_EQ(array.i().size(), values.size());
  array.i() = std::move(values);
  return array;
}

// Uniform reals, or integers, of [low, high].
inline Array random_array(DType dtype, Shape shape, uint64_t seed, double low = -4, double high = 4) {
  std::mt19937_64 random(seed);
  Array array(dtype, std::move(shape));
  if (array.real()) {
    std::uniform_real_distribution<double> next(low, high);
    for (double& v : array.f()) v = next(random);
  } else {
    std::uniform_int_distribution<int64_t> next(static_cast<int64_t>(low), static_cast<int64_t>(high));
    for (int64_t& v : array.i()) v = wrap(dtype, next(random));
  }
  return array;
}

inline TensorType type_of(const Array& array) {
  return {array.dtype, array.shape};
}

// A graph of one node whose operands are parameters and whose results are the outputs.
inline Graph single(Op op, const std::vector<TensorType>& types, const Attrs& attrs = {}) {
  Graph graph;
  std::vector<ValueId> operands;
  for (const TensorType& type : types) {
    operands.push_back(graph.parameter(fmt::format("x{}", operands.size()), type));
  }
  const NodeId node = graph.add(op, operands, attrs);
  for (ValueId v : graph.node(node).outputs) graph.output(fmt::format("y{}", v), v);
  return graph;
}

inline std::vector<Array> eval_op(Op op, const std::vector<Array>& inputs, const Attrs& attrs = {},
                                  bool round = false) {
  std::vector<TensorType> types;
  for (const Array& x : inputs) types.push_back(type_of(x));
  return evaluate(single(op, types, attrs), inputs, {.round = round, .observe = {}});
}

inline std::vector<TensorType> infer_op(Op op, const std::vector<TensorType>& types, const Attrs& attrs = {}) {
  const Graph graph = single(op, types, attrs);
  std::vector<TensorType> results;
  for (const Graph::Port& port : graph.outputs()) results.push_back(graph.type(port.value));
  return results;
}

// The node must be refused with kInvalidNode and a message that contains every one of `parts`.
inline void expect_rejected(Op op, const std::vector<TensorType>& types, const Attrs& attrs,
                            const std::vector<std::string>& parts) {
  try {
    single(op, types, attrs);
    ADD_FAILURE() << to_string(op) << " was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidNode) << error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what() << "\nlacks: " << part;
    }
  }
}

using Coordinates = std::vector<int64_t>;

// Visits all coordinates of a shape in row-major order.
template <typename Visit>
void for_each_coordinate(const Shape& shape, const Visit& visit) {
  Coordinates at(shape.size(), 0);
  for (int64_t n = element_count(shape); n > 0; --n) {
    visit(std::as_const(at));
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

inline size_t linear_index(const Shape& shape, const Coordinates& at) {
  int64_t index = 0;
  for (size_t d = 0; d < shape.size(); ++d) index = index * shape[d] + at[d];
  return static_cast<size_t>(index);
}

inline double real_at(const Array& array, const Coordinates& at) {
  const size_t index = linear_index(array.shape, at);
  return array.real() ? array.f()[index] : static_cast<double>(array.i()[index]);
}

// Every element of `actual` equals expected(coordinates).
template <typename Expected>
void expect_elements(const Array& actual, const Expected& expected) {
  for_each_coordinate(actual.shape, [&](const Coordinates& at) {
    const double want = expected(at), got = real_at(actual, at);
    if (std::isnan(want) && std::isnan(got)) return;
    EXPECT_DOUBLE_EQ(got, want) << "at " << heddle::to_string(at) << " of " << to_string(type_of(actual));
  });
}

}  // namespace heddle::ir::testing
