#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "driver/cuda/gemm_bench.h"

namespace heddle::driver {
namespace {

double load(const void* data, DType type, int64_t index) {
  const auto* bytes = static_cast<const uint8_t*>(data) + index * static_cast<int64_t>(size_of(type));
  switch (type) {
    case DType::kF32: {
      float value = 0;
      std::memcpy(&value, bytes, sizeof(value));
      return value;
    }
    case DType::kI8:
      return static_cast<int8_t>(*bytes);
    case DType::kI32: {
      int32_t value = 0;
      std::memcpy(&value, bytes, sizeof(value));
      return value;
    }
    default: {
      uint32_t bits = 0;
      std::memcpy(&bits, bytes, size_of(type));
      return decode_float(type, bits);
    }
  }
}

double activate(const std::string& step, double x) {
  if (step == "relu") return x < 0 ? 0 : x;
  if (step == "gelu") return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  if (step == "silu") return x / (1 + std::exp(-x));
  if (step == "sigmoid") return 1 / (1 + std::exp(-x));
  if (step == "tanh") return std::tanh(x);
  if (step == "hardswish") return x * std::clamp(x + 3, 0.0, 6.0) / 6;
  if (step == "softplus") return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  constexpr std::string_view kScale = "scale=";
  HEDDLE_CHECK(step.starts_with(kScale), "{}", step);
  return x * static_cast<float>(std::stod(step.substr(kScale.size())));
}

}  // namespace

double GemmReference::at(int64_t batch, int64_t row, int64_t col, double& magnitude) const {
  const schedule::CudaGemmProblem& p = problem;
  double sum = 0;
  magnitude = 0;
  for (int64_t k = 0; k < p.k; ++k) {
    const double x = load(a, p.in, batch * p.stride_a + (p.a_k_major ? row * p.lda + k : k * p.lda + row));
    const double y = load(b, p.in, batch * p.stride_b + (p.b_k_major ? col * p.ldb + k : k * p.ldb + col));
    sum += x * y;
    magnitude += std::abs(x * y);
  }
  size_t operand = 0;
  for (const std::string& step : epilogue.steps) {
    if (operand == epilogue.operands.size() || epilogue.operands[operand].name != step) {
      sum = activate(step, sum);
      continue;
    }
    const codegen::CudaEpilogueOperand& o = epilogue.operands[operand];
    const int64_t index = o.kind == codegen::CudaEpilogueOperand::Kind::kColumn ? col
                          : o.kind == codegen::CudaEpilogueOperand::Kind::kRow  ? row
                                                                                : (batch * p.m + row) * p.n + col;
    const double value = load(extra[operand++].data(), o.dtype, index);
    sum += value;
    magnitude += std::abs(value);
  }
  return sum;
}

}  // namespace heddle::driver
