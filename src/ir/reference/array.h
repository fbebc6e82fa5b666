#pragma once

#include <variant>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::ir {

// The reference evaluator's tensor: every floating type is held as double, every integer and bool as int64 (u64 by its
// bits). Row-major and dense; slow and exact on purpose. Integers are always within their dtype's range.
struct Array {
  DType dtype = DType::kF64;
  Shape shape;
  std::variant<std::vector<double>, std::vector<int64_t>> data;

  Array() = default;
  Array(DType dtype, Shape shape);  // zero-filled; throws kOutOfMemory

  bool real() const { return data.index() == 0; }
  std::vector<double>& f() { return std::get<0>(data); }
  const std::vector<double>& f() const { return std::get<0>(data); }
  std::vector<int64_t>& i() { return std::get<1>(data); }
  const std::vector<int64_t>& i() const { return std::get<1>(data); }
  int64_t size() const { return element_count(shape); }
};

Array to_array(const Tensor& tensor);
// Rounds floats to `array.dtype`, wraps integers.
Tensor to_tensor(const Array& array);

// The low bits of `value` as a value of an integer type; bool is 0 or 1. u64 keeps its bits.
int64_t wrap(DType dtype, int64_t value);
void wrap(DType dtype, std::vector<int64_t>& values);
// Rounds every element to the floating type (nothing for f64).
void round_all(DType dtype, std::vector<double>& values);

}  // namespace heddle::ir
