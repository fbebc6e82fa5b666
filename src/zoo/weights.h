#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "heddle/dtype.h"

namespace heddle::zoo {

// The random distribution of a weight's values.
struct Fill {
  enum class Kind { kConstant, kNormal, kUniform };
  Kind kind = Kind::kConstant;
  double first = 0;   // the constant, the mean, or the lower bound
  double second = 0;  // the standard deviation, or the upper bound

  static Fill constant(double value) { return {Kind::kConstant, value, 0}; }
  static Fill normal(double mean, double deviation) { return {Kind::kNormal, mean, deviation}; }
  static Fill uniform(double low, double high) { return {Kind::kUniform, low, high}; }
};

// The key of a tensor's random number stream. It depends on the model's seed and the tensor's name, and not on the
// order in which tensors are generated.
uint64_t weight_key(uint64_t seed, std::string_view name);

// Computes the values [begin, begin + out.size()) of the tensor. The generator is counter-based, so any part can be
// computed separately, at about 2 GB/s.
void fill_values(const Fill& fill, uint64_t key, uint64_t begin, std::span<float> out);

// Encodes values as they are stored in f32, f16 or bf16. Finite numbers remain finite.
std::string encode_values(DType type, std::span<const float> values);

}  // namespace heddle::zoo
