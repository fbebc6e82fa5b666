#pragma once

#include <variant>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::ir {

// The tensor of the reference evaluator. Elements of every floating type are stored as double; integers and bool are
// stored as int64 (u64 with the same bits). Row-major and dense. Integers are always in the range of their dtype. The
// representation favours exactness over speed.
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
// Converts to a tensor. Floats are rounded to `array.dtype`; integers wrap.
Tensor to_tensor(const Array& array);

// Converts the low bits of `value` to a value of the integer type `dtype`. A bool is 0 or 1. A u64 keeps its 64 bits.
int64_t wrap(DType dtype, int64_t value);
void wrap(DType dtype, std::vector<int64_t>& values);
// Rounds every element to the floating type `dtype`. For f64, does nothing.
void round_all(DType dtype, std::vector<double>& values);

}  // namespace heddle::ir
