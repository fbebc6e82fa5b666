#include "tune/random_data.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <random>

namespace heddle::tune {
namespace {

constexpr size_t kTable = 1 << 14;

// The bits of a random element, in the low bytes.
uint64_t random_bits(DType dtype, std::mt19937_64& random) {
  const double value = std::uniform_real_distribution<double>(-1, 1)(random);
  uint64_t bits = 0;
  if (dtype == DType::kF64) {
    std::memcpy(&bits, &value, sizeof(value));
  } else if (dtype == DType::kF32) {
    const auto single = static_cast<float>(value);
    std::memcpy(&bits, &single, sizeof(single));
  } else if (is_float(dtype)) {
    bits = encode_float(dtype, value);
  } else if (dtype == DType::kI8) {
    bits = static_cast<uint8_t>(static_cast<int8_t>(value * 100));
  } else if (dtype == DType::kU8) {
    bits = static_cast<uint8_t>(100 + value * 100);
  } else if (dtype == DType::kBool) {
    bits = value > 0 ? 1 : 0;
  }
  return bits;
}

template <typename T>
double widen(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return static_cast<double>(value);
}

// Winograd's form rounds more than the direct one, tf32 more than f32.
double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 1e-10;
    case DType::kF32:
      return 2e-3;
    case DType::kF16:
      return 0x1p-7;
    default:
      return is_float(dtype) ? 0x1p-5 : 0;
  }
}

// Of the finite values; 0 of none.
double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  size_t count = 0;
  for (const double value : values) {
    if (std::isfinite(value)) sum += value * value, ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

}  // namespace

void fill_random(void* data, DType dtype, int64_t count, uint64_t seed) {
  const size_t element = size_of(dtype);
  std::mt19937_64 random(seed);
  std::vector<uint64_t> table(kTable);
  for (uint64_t& bits : table) bits = random_bits(dtype, random);
  auto* to = static_cast<std::byte*>(data);
  uint64_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < count; ++i, to += element) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(to, &table[state >> 50], element);
  }
}

double as_double(const void* from, DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return widen<double>(from);
    case DType::kF32:
      return widen<float>(from);
    case DType::kF16:
    case DType::kBF16:
      return decode_float(dtype, static_cast<uint32_t>(widen<uint16_t>(from)));
    case DType::kI64:
      return widen<int64_t>(from);
    case DType::kI32:
      return widen<int32_t>(from);
    case DType::kI16:
      return widen<int16_t>(from);
    case DType::kI8:
      return widen<int8_t>(from);
    case DType::kU64:
      return widen<uint64_t>(from);
    case DType::kU32:
      return widen<uint32_t>(from);
    case DType::kU16:
      return widen<uint16_t>(from);
    default:
      return is_float(dtype) ? decode_float(dtype, static_cast<uint32_t>(widen<uint8_t>(from))) : widen<uint8_t>(from);
  }
}

std::vector<double> as_doubles(const void* data, DType dtype, int64_t count) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(count));
  const auto* from = static_cast<const std::byte*>(data);
  for (int64_t i = 0; i < count; ++i, from += size_of(dtype)) values.push_back(as_double(from, dtype));
  return values;
}

std::string difference(const std::vector<double>& expected, const std::vector<double>& got, DType dtype) {
  const double bound = tolerance_of(dtype), size = root_mean_square(expected);
  for (size_t i = 0; i < got.size(); ++i) {
    const double x = expected[i], y = got[i];
    const bool same = x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= bound * (std::abs(x) + size) ||
                      (is_int(dtype) && std::abs(x - y) <= 1);
    if (!same) return fmt::format("element {} of its result is {}, that of the first candidate {}", i, y, x);
  }
  return "";
}

}  // namespace heddle::tune
