#include "narrow.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

namespace heddle::python {
namespace {

uint8_t mask_of(DType dtype) {
  return static_cast<uint8_t>((1u << bits_of(dtype)) - 1);
}

// Heddle's byte for the element in the low bits of this one.
class Widen {
 public:
  explicit Widen(DType dtype)
      : mask_(mask_of(dtype)), sign_(is_signed_int(dtype) ? static_cast<uint8_t>((mask_ >> 1) + 1) : uint8_t{0}) {}
  // Flipping the sign bit and subtracting it sign-extends the element.
  uint8_t operator()(uint8_t byte) const { return static_cast<uint8_t>(((byte & mask_) ^ sign_) - sign_); }

 private:
  uint8_t mask_, sign_;
};

void mask(DType dtype, std::span<uint8_t> bytes) {
  const uint8_t low = mask_of(dtype);
  for (uint8_t& byte : bytes) byte &= low;
}

}  // namespace

bool is_narrow(DType dtype) {
  return size_of(dtype) == 1 && bits_of(dtype) < 8 && dtype != DType::kBool;
}

Array widened(Array array) {
  if (array.device != kHost || !is_narrow(array.dtype)) return array;
  const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(array.data),
                                       static_cast<size_t>(element_count(array.shape)));
  const Widen widen(array.dtype);
  if (std::ranges::all_of(bytes, [&](uint8_t byte) { return widen(byte) == byte; })) return array;
  const auto copy = std::make_shared<Tensor>(array.dtype, array.shape);
  std::ranges::transform(bytes, static_cast<uint8_t*>(copy->mutable_data()), widen);
  array.data = copy->mutable_data();
  array.hold = copy;
  return array;
}

Tensor in_low_bits(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.shape());
  const auto from = tensor.values<uint8_t>();
  const auto to = copy.mutable_values<uint8_t>();
  std::ranges::copy(from, to.begin());
  mask(tensor.dtype(), to);
  return copy;
}

void narrow(const Array& array) {
  if (!array.low_bits) return;
  mask(array.dtype, {static_cast<uint8_t*>(array.data), static_cast<size_t>(element_count(array.shape))});
}

}  // namespace heddle::python
