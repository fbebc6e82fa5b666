#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/error.h"
#include "heddle/export.h"

namespace heddle {

using Shape = std::vector<int64_t>;

// Product of the extents; 1 for rank 0. Throws kInvalidArgument on a negative extent or on overflow of int64.
HEDDLE_API int64_t element_count(const Shape& shape);
// "[1,3,224,224]"; "[]" for a scalar.
HEDDLE_API std::string to_string(const Shape& shape);

// A dense row-major tensor. Copies share the storage; mutable_data() is only for code that has just created the tensor.
class HEDDLE_API Tensor {
 public:
  Tensor() = default;
  // Zero-filled (64-byte aligned) storage. Throws kOutOfMemory.
  Tensor(DType dtype, Shape shape);
  // The same, uninitialised, for callers that write every element. Large tensors are not touched twice, and use huge
  // pages if the system has them. Strings are not allowed.
  static Tensor unfilled(DType dtype, Shape shape);
  // Borrows `data`, kept alive by `owner`: memory-mapped weights, a caller's array. Strings are not allowed.
  static Tensor borrow(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner);
  static Tensor of_strings(Shape shape, std::vector<std::string> values);

  template <typename T>
  static Tensor of(DType dtype, Shape shape, std::initializer_list<T> values) {
    return of(dtype, std::move(shape), std::span<const T>(values.begin(), values.size()));
  }
  // Copies `values`, whose byte size must equal the tensor's.
  template <typename T>
  static Tensor of(DType dtype, Shape shape, std::span<const T> values) {
    Tensor tensor(dtype, std::move(shape));
    if (values.size_bytes() != tensor.bytes()) {
      throw Error(ErrorCode::kInvalidArgument, "Tensor::of",
                  "the values do not fill the shape " + to_string(tensor.shape()));
    }
    if (!values.empty()) std::memcpy(tensor.mutable_data(), values.data(), values.size_bytes());
    return tensor;
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t size() const { return size_; }
  size_t bytes() const { return static_cast<size_t>(size_) * size_of(dtype_); }
  bool defined() const { return data_ != nullptr || strings_ != nullptr; }

  const void* data() const { return data_.get(); }
  void* mutable_data() { return const_cast<void*>(data_.get()); }
  template <typename T>
  std::span<const T> values() const {
    return {static_cast<const T*>(data()), static_cast<size_t>(size_)};
  }
  template <typename T>
  std::span<T> mutable_values() {
    return {static_cast<T*>(mutable_data()), static_cast<size_t>(size_)};
  }
  const std::vector<std::string>& strings() const { return *strings_; }

  // The same storage seen with another shape of equal size.
  Tensor reshaped(Shape shape) const;

 private:
  DType dtype_ = DType::kF32;
  Shape shape_;
  int64_t size_ = 0;
  std::shared_ptr<const void> data_;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

}  // namespace heddle
