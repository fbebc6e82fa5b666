#include "ir/reference/array.h"

#include <array>
#include <bit>
#include <cmath>
#include <new>

#include "base/check.h"
#include "base/memory.h"

namespace heddle::ir {
namespace {

bool is_wide(DType dtype) {
  return dtype == DType::kI64 || dtype == DType::kU64;
}

double from_f16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  // Scaling by 2^112 moves the exponent from half to single and makes half subnormals exact.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return sign ? -scaled : scaled;
}

// Decoded values of all codes of a one-byte float.
std::array<double, 256> decode_table(DType dtype) {
  std::array<double, 256> table;
  const uint32_t mask = dtype == DType::kF4E2M1 ? 0xf : 0xff;
  for (uint32_t code = 0; code < 256; ++code) table[code] = decode_float(dtype, code & mask);
  return table;
}

template <typename T, typename Out>
void widen(const Tensor& tensor, std::vector<Out>& out) {
  const auto values = tensor.values<T>();
  for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<Out>(values[i]);
}

void widen_floats(const Tensor& tensor, std::vector<double>& out) {
  switch (tensor.dtype()) {
    case DType::kF64:
      return widen<double>(tensor, out);
    case DType::kF32:
      return widen<float>(tensor, out);
    case DType::kF16: {
      const auto bits = tensor.values<uint16_t>();
      for (size_t i = 0; i < bits.size(); ++i) out[i] = from_f16(bits[i]);
      return;
    }
    case DType::kBF16: {
      const auto bits = tensor.values<uint16_t>();
      for (size_t i = 0; i < bits.size(); ++i) out[i] = std::bit_cast<float>(static_cast<uint32_t>(bits[i]) << 16);
      return;
    }
    default: {
      const auto codes = tensor.values<uint8_t>();
      const auto table = decode_table(tensor.dtype());
      for (size_t i = 0; i < codes.size(); ++i) out[i] = table[codes[i]];
    }
  }
}

void widen_ints(const Tensor& tensor, std::vector<int64_t>& out) {
  switch (tensor.dtype()) {
    case DType::kI64:
    case DType::kU64:
      return widen<int64_t>(tensor, out);
    case DType::kI32:
      return widen<int32_t>(tensor, out);
    case DType::kU32:
      return widen<uint32_t>(tensor, out);
    case DType::kI16:
      return widen<int16_t>(tensor, out);
    case DType::kU16:
      return widen<uint16_t>(tensor, out);
    case DType::kU8:
      return widen<uint8_t>(tensor, out);
    default:
      widen<int8_t>(tensor, out);
      wrap(tensor.dtype(), out);
  }
}

// Rounds to nearest even by integer arithmetic on the bits of a double; only what stays a normal number takes this
// short way.
template <int kMantissaBits, int kMinExponent>
double round_half(DType dtype, double value, double largest) {
  constexpr int kDropped = 52 - kMantissaBits;
  const double magnitude = std::fabs(value);
  if (!(magnitude >= std::ldexp(1.0, kMinExponent) && magnitude <= largest)) return round_to(dtype, value);
  const auto bits = std::bit_cast<uint64_t>(value);
  const uint64_t half = (uint64_t{1} << (kDropped - 1)) - 1 + ((bits >> kDropped) & 1);
  return std::bit_cast<double>((bits + half) >> kDropped << kDropped);
}

template <typename T, typename In>
void narrow(const std::vector<In>& in, Tensor& tensor) {
  auto values = tensor.mutable_values<T>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(in[i]);
}

}  // namespace

Array::Array(DType dtype_in, Shape shape_in) : dtype(dtype_in), shape(std::move(shape_in)) {
  const auto count = static_cast<size_t>(element_count(shape));
  try {
    if (is_float(dtype)) {
      data.emplace<0>(count);
    } else {
      data.emplace<1>(count);
    }
  } catch (const std::exception&) {  // bad_alloc, length_error
    fail_allocation(fmt::format("reference evaluation of {}{}", heddle::to_string(dtype), heddle::to_string(shape)),
                    8 * count);
  }
}

int64_t wrap(DType dtype, int64_t value) {
  if (dtype == DType::kBool) return value != 0;
  if (is_wide(dtype)) return value;
  const int shift = 64 - bits_of(dtype);
  const uint64_t top = static_cast<uint64_t>(value) << shift;
  return is_signed_int(dtype) ? static_cast<int64_t>(top) >> shift : static_cast<int64_t>(top >> shift);
}

void wrap(DType dtype, std::vector<int64_t>& values) {
  if (dtype == DType::kBool) {
    for (int64_t& v : values) v = v != 0;
  } else if (!is_wide(dtype)) {
    const int shift = 64 - bits_of(dtype);
    if (is_signed_int(dtype)) {
      for (int64_t& v : values) v = static_cast<int64_t>(static_cast<uint64_t>(v) << shift) >> shift;
    } else {
      for (int64_t& v : values) v = static_cast<int64_t>(static_cast<uint64_t>(v) << shift >> shift);
    }
  }
}

void round_all(DType dtype, std::vector<double>& values) {
  if (dtype == DType::kF64) return;
  if (dtype == DType::kF32) {
    for (double& v : values) v = static_cast<float>(v);
  } else if (dtype == DType::kF16) {
    for (double& v : values) v = round_half<10, -14>(dtype, v, 65504);
  } else if (dtype == DType::kBF16) {
    for (double& v : values) v = round_half<7, -126>(dtype, v, 0x1.fep127);
  } else {
    // An infinity is kept, where the type has one, rather than saturated.
    for (double& v : values) v = round_to(dtype, v, !std::isinf(v));
  }
}

Array to_array(const Tensor& tensor) {
  HEDDLE_CHECK(tensor.dtype() != DType::kString, "strings are not tensors of the IR");
  Array array(tensor.dtype(), tensor.shape());
  if (array.real()) {
    widen_floats(tensor, array.f());
  } else {
    widen_ints(tensor, array.i());
  }
  return array;
}

Tensor to_tensor(const Array& array) {
  Tensor tensor(array.dtype, array.shape);
  switch (array.dtype) {
    case DType::kF64:
      narrow<double>(array.f(), tensor);
      break;
    case DType::kF32:
      narrow<float>(array.f(), tensor);
      break;
    case DType::kF16:
    case DType::kBF16: {
      auto bits = tensor.mutable_values<uint16_t>();
      for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(encode_float(array.dtype, array.f()[i]));
      break;
    }
    case DType::kI64:
    case DType::kU64:
      narrow<int64_t>(array.i(), tensor);
      break;
    case DType::kI32:
    case DType::kU32:
      narrow<uint32_t>(array.i(), tensor);
      break;
    case DType::kI16:
    case DType::kU16:
      narrow<uint16_t>(array.i(), tensor);
      break;
    case DType::kBool: {
      auto bytes = tensor.mutable_values<uint8_t>();
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = array.i()[i] != 0;
      break;
    }
    default:
      if (array.real()) {
        auto codes = tensor.mutable_values<uint8_t>();
        for (size_t i = 0; i < codes.size(); ++i)
          codes[i] = static_cast<uint8_t>(encode_float(array.dtype, array.f()[i], !std::isinf(array.f()[i])));
      } else {
        auto bytes = tensor.mutable_values<uint8_t>();
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(wrap(array.dtype, array.i()[i]));
      }
  }
  return tensor;
}

}  // namespace heddle::ir
