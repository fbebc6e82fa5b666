#include "ir/reference/scalar.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/clones.h"

namespace heddle::ir {
namespace {

template <typename T>
T load(const Tensor& tensor, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(tensor.data()) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void store(Tensor& tensor, int64_t index, T value) {
  std::memcpy(static_cast<char*>(tensor.mutable_data()) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

int64_t saturated(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 9223372036854775808.0) return std::numeric_limits<int64_t>::max();
  if (value < -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

// Keeps the low `bits` of a value held in one byte, sign-extended where the type is signed.
int64_t narrow(DType type, int64_t value) {
  const int bits = bits_of(type);
  const auto low = static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1);
  const bool negative = is_signed_int(type) && (low >> (bits - 1)) != 0;
  return negative ? static_cast<int64_t>(low) - (int64_t{1} << bits) : static_cast<int64_t>(low);
}

// The greatest number below `limit` among the elements without their sign.
HEDDLE_CLONES uint16_t greatest_below(const uint16_t* bits, int64_t count, uint16_t limit) {
  uint16_t most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<uint16_t>(bits[i] & 0x7fff);
    most = std::max(most, value < limit ? value : uint16_t{0});
  }
  return most;
}
HEDDLE_CLONES uint32_t greatest_below(const uint32_t* bits, int64_t count, uint32_t limit) {
  uint32_t most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t value = bits[i] & 0x7fffffff;
    most = std::max(most, value < limit ? value : 0);
  }
  return most;
}
HEDDLE_CLONES uint8_t greatest(const uint8_t* bytes, int64_t count) {
  uint8_t most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, bytes[i]);
  return most;
}

}  // namespace

// Magnitudes of floats have the order of their bits.
double largest_magnitude(const Tensor& tensor) {
  const auto* narrow = static_cast<const uint16_t*>(tensor.data());
  const int64_t count = tensor.size();
  switch (tensor.dtype()) {
    case DType::kF16:
      return decode_float(DType::kF16, greatest_below(narrow, count, 0x7c00));
    case DType::kBF16:
      return decode_float(DType::kBF16, greatest_below(narrow, count, 0x7f80));
    case DType::kF32:
      return std::bit_cast<float>(greatest_below(static_cast<const uint32_t*>(tensor.data()), count, 0x7f800000));
    case DType::kU8:
      return greatest(static_cast<const uint8_t*>(tensor.data()), count);
    default:
      break;
  }
  double most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = std::fabs(real_at(tensor, i));
    if (std::isfinite(value)) most = std::max(most, value);
  }
  return most;
}

double real_at(const Tensor& tensor, int64_t index) {
  switch (tensor.dtype()) {
    case DType::kF64:
      return load<double>(tensor, index);
    case DType::kF32:
      return load<float>(tensor, index);
    case DType::kF16:
    case DType::kBF16:
      return decode_float(tensor.dtype(), load<uint16_t>(tensor, index));
    case DType::kU64:
      return static_cast<double>(load<uint64_t>(tensor, index));
    default:
      if (is_float(tensor.dtype())) return decode_float(tensor.dtype(), load<uint8_t>(tensor, index));
      return static_cast<double>(integer_at(tensor, index));
  }
}

int64_t integer_at(const Tensor& tensor, int64_t index) {
  const DType type = tensor.dtype();
  if (is_float(type)) return saturated(real_at(tensor, index));
  switch (size_of(type)) {
    case 8:
      return load<int64_t>(tensor, index);
    case 4:
      return is_signed_int(type) ? load<int32_t>(tensor, index) : static_cast<int64_t>(load<uint32_t>(tensor, index));
    case 2:
      return is_signed_int(type) ? load<int16_t>(tensor, index) : static_cast<int64_t>(load<uint16_t>(tensor, index));
    case 1:
      if (type == DType::kBool) return load<uint8_t>(tensor, index) != 0;
      return narrow(type, load<uint8_t>(tensor, index));
    default:
      break;
  }
  HEDDLE_CHECK(false, "no number in a tensor of {}", to_string(type));
}

void set_real(Tensor& tensor, int64_t index, double value) {
  switch (tensor.dtype()) {
    case DType::kF64:
      return store(tensor, index, value);
    case DType::kF32:
      return store(tensor, index, static_cast<float>(value));
    case DType::kF16:
    case DType::kBF16:
      return store(tensor, index, static_cast<uint16_t>(encode_float(tensor.dtype(), value)));
    default:
      if (is_float(tensor.dtype())) {
        return store(tensor, index, static_cast<uint8_t>(encode_float(tensor.dtype(), value)));
      }
      return set_integer(tensor, index, saturated(value));
  }
}

void set_integer(Tensor& tensor, int64_t index, int64_t value) {
  const DType type = tensor.dtype();
  if (is_float(type)) return set_real(tensor, index, static_cast<double>(value));
  switch (size_of(type)) {
    case 8:
      return store(tensor, index, value);
    case 4:
      return store(tensor, index, static_cast<uint32_t>(value));
    case 2:
      return store(tensor, index, static_cast<uint16_t>(value));
    case 1:
      return store(tensor, index, static_cast<uint8_t>(type == DType::kBool ? value != 0 : narrow(type, value)));
    default:
      break;
  }
  HEDDLE_CHECK(false, "no number in a tensor of {}", to_string(type));
}

bool is_splat(const Tensor& tensor) {
  if (tensor.dtype() == DType::kString || tensor.size() == 0) return false;
  // All bytes equal those one element further: one comparison of the buffer with itself, shifted.
  const auto* bytes = static_cast<const char*>(tensor.data());
  const size_t step = size_of(tensor.dtype());
  return std::memcmp(bytes, bytes + step, tensor.bytes() - step) == 0;
}

std::optional<double> splat_of(const Tensor& tensor) {
  if (!is_splat(tensor)) return std::nullopt;
  return real_at(tensor, 0);
}

Tensor splat(DType dtype, Shape shape, double value) {
  Tensor tensor(dtype, std::move(shape));
  if (tensor.size() == 0) return tensor;
  set_real(tensor, 0, value);
  const size_t step = size_of(dtype);
  auto* bytes = static_cast<char*>(tensor.mutable_data());
  for (size_t filled = step; filled < tensor.bytes(); filled *= 2) {
    std::memcpy(bytes + filled, bytes, std::min(filled, tensor.bytes() - filled));
  }
  return tensor;
}

}  // namespace heddle::ir
