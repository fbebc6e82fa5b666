#include "zoo/weights.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace heddle::zoo {
namespace {

// The output function of SplitMix64 (Steele, Lea, Flood 2014), applied to a counter.
uint64_t mix(uint64_t key, uint64_t counter) {
  uint64_t z = key + counter * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

void fill_normal(const Fill& fill, uint64_t key, uint64_t begin, std::span<float> out) {
  // The sum of four 16-bit uniforms (Irwin-Hall): bell-shaped, bounded at 3.46 deviations, no transcendental function.
  const double scale = fill.second / std::sqrt(4.0 * (65536.0 * 65536.0 - 1.0) / 12.0);
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t bits = mix(key, begin + i);
    const auto sum =
        static_cast<int32_t>((bits & 0xFFFF) + ((bits >> 16) & 0xFFFF) + ((bits >> 32) & 0xFFFF) + (bits >> 48));
    out[i] = static_cast<float>(fill.first + scale * (sum - 2 * 65535));
  }
}

void fill_uniform(const Fill& fill, uint64_t key, uint64_t begin, std::span<float> out) {
  const double scale = (fill.second - fill.first) / static_cast<double>(uint64_t{1} << 32);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(fill.first + scale * static_cast<double>(mix(key, begin + i) >> 32));
  }
}

}  // namespace

uint64_t weight_key(uint64_t seed, std::string_view name) {
  return XXH64(name.data(), name.size(), seed);
}

void fill_values(const Fill& fill, uint64_t key, uint64_t begin, std::span<float> out) {
  switch (fill.kind) {
    case Fill::Kind::kConstant:
      std::fill(out.begin(), out.end(), static_cast<float>(fill.first));
      break;
    case Fill::Kind::kNormal:
      fill_normal(fill, key, begin, out);
      break;
    case Fill::Kind::kUniform:
      fill_uniform(fill, key, begin, out);
      break;
  }
}

std::string encode_values(DType type, std::span<const float> values) {
  if (type == DType::kF32) return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
  const auto most = static_cast<float>(type == DType::kF16 ? 65504 : decode_float(DType::kBF16, 0x7f7f));
  std::string out(values.size() * sizeof(uint16_t), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = std::isfinite(values[i]) ? std::clamp(values[i], -most, most) : values[i];
    const uint16_t bits = type == DType::kF16 ? std::bit_cast<uint16_t>(static_cast<_Float16>(value))
                                              : static_cast<uint16_t>(encode_float(type, value));
    std::memcpy(out.data() + i * sizeof(bits), &bits, sizeof(bits));
  }
  return out;
}

}  // namespace heddle::zoo
