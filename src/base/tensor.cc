#include "heddle/tensor.h"

#include <cstdlib>

#include "base/check.h"
#include "base/memory.h"

namespace heddle {
namespace {

constexpr size_t kAlignment = 64;  // one AVX-512 register, one cache line

}  // namespace

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  bool zero = false;
  for (int64_t extent : shape) {
    if (extent < 0) fail(ErrorCode::kInvalidArgument, to_string(shape), "an extent is negative");
    if (extent == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(count, extent, &count)) {
      fail(ErrorCode::kInvalidArgument, to_string(shape), "the number of elements overflows 64 bits");
    }
  }
  return zero ? 0 : count;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

Tensor::Tensor(DType dtype, Shape shape) {
  if (dtype != DType::kString) {
    *this = unfilled(dtype, std::move(shape));
    std::memset(mutable_data(), 0, bytes());
    return;
  }
  dtype_ = dtype;
  size_ = element_count(shape);
  shape_ = std::move(shape);
  strings_ = std::make_shared<const std::vector<std::string>>(static_cast<size_t>(size_));
}

Tensor Tensor::unfilled(DType dtype, Shape shape) {
  HEDDLE_CHECK(dtype != DType::kString);
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.size_ = element_count(shape);
  size_t wanted = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(tensor.size_), size_of(dtype), &wanted) || wanted > SIZE_MAX / 2) {
    fail(ErrorCode::kInvalidArgument, to_string(shape), "the size in bytes overflows 64 bits");
  }
  const size_t rounded = (std::max<size_t>(wanted, 1) + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) fail_allocation(fmt::format("tensor {}{}", to_string(dtype), to_string(shape)), wanted);
  advise_huge_pages(memory, wanted);
  tensor.shape_ = std::move(shape);
  tensor.data_ = std::shared_ptr<const void>(memory, [](const void* p) { std::free(const_cast<void*>(p)); });
  return tensor;
}

Tensor Tensor::borrow(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner) {
  HEDDLE_CHECK(dtype != DType::kString);
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.size_ = element_count(shape);
  tensor.shape_ = std::move(shape);
  tensor.data_ = std::shared_ptr<const void>(std::move(owner), data);
  return tensor;
}

Tensor Tensor::of_strings(Shape shape, std::vector<std::string> values) {
  Tensor tensor;
  tensor.dtype_ = DType::kString;
  tensor.size_ = element_count(shape);
  if (static_cast<size_t>(tensor.size_) != values.size()) {
    fail(ErrorCode::kInvalidArgument, "Tensor::of_strings", "the values do not fill the shape " + to_string(shape));
  }
  tensor.shape_ = std::move(shape);
  tensor.strings_ = std::make_shared<const std::vector<std::string>>(std::move(values));
  return tensor;
}

Tensor Tensor::reshaped(Shape shape) const {
  if (element_count(shape) != size_) {
    fail(ErrorCode::kInvalidArgument, "reshape",
         to_string(shape_) + " does not hold as many elements as " + to_string(shape));
  }
  Tensor view = *this;
  view.shape_ = std::move(shape);
  return view;
}

}  // namespace heddle
