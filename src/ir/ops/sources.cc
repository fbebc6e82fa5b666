#include <array>
#include <cmath>
#include <numbers>

#include "ir/ops/families.h"
#include "ir/ops/rules.h"
#include "ir/ops/strided.h"

namespace heddle::ir {
namespace {

std::vector<TensorType> infer_declared(const InferContext& c) {
  TensorType type{c.attrs.dtype("dtype"), c.attrs.ints("shape")};
  require_type(type);
  return {std::move(type)};
}

std::vector<TensorType> infer_constant(const InferContext& c) {
  const Tensor& value = c.attrs.tensor("value");
  require(value.defined(), "the constant has no value");
  TensorType type{value.dtype(), value.shape()};
  require_type(type);
  return {std::move(type)};
}

std::vector<TensorType> infer_iota(const InferContext& c) {
  auto types = infer_declared(c);
  require(is_number(types[0].dtype), "iota counts in numbers, not {}", types[0].dtype);
  require_dim("dim", c.attrs.integer("dim"), types[0].shape);
  return types;
}

std::vector<TensorType> infer_random(const InferContext& c) {
  auto types = infer_declared(c);
  const std::string& kind = c.attrs.text("kind");
  require(kind == "uniform" || kind == "normal", "kind = \"{}\" is neither \"uniform\" nor \"normal\"", kind);
  const DType dtype = types[0].dtype;
  require(dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16,
          "random makes f64, f32, f16 and bf16, not {}", dtype);
  return types;
}

std::vector<Array> eval_constant(const EvalContext& c) {
  return results_of(to_array(c.attrs.tensor("value")));
}

std::vector<Array> eval_iota(const EvalContext& c) {
  Array result(c.outputs[0].dtype, c.outputs[0].shape);
  const AroundDim around(result.shape, c.attrs.integer("dim"));
  std::visit(
      [&](auto& out) {
        size_t at = 0;
        for (int64_t o = 0; o < around.outer; ++o) {
          for (int64_t k = 0; k < around.extent; ++k) {
            for (int64_t i = 0; i < around.inner; ++i) out[at++] = static_cast<std::decay_t<decltype(out[0])>>(k);
          }
        }
      },
      result.data);
  if (!result.real()) wrap(result.dtype, result.i());
  return results_of(std::move(result));
}

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) of the counter `index` under the
// key `seed`.
std::array<uint32_t, 4> philox(uint64_t seed, uint64_t index) {
  std::array<uint32_t, 4> x = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0};
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * x[0], b = uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return x;
}

// The top `bits` bits of a word as a fraction of [0, 1).
double fraction(uint64_t word, int bits) {
  return std::ldexp(static_cast<double>(word >> (64 - bits)), -bits);
}

std::vector<Array> eval_random(const EvalContext& c) {
  const DType dtype = c.outputs[0].dtype;
  const auto seed = static_cast<uint64_t>(c.attrs.integer("seed"));
  const bool normal = c.attrs.text("kind") == "normal";
  const bool wide = dtype == DType::kF64;
  const int bits = wide ? 53 : normal || dtype == DType::kF32 ? 24 : dtype == DType::kF16 ? 11 : 8;
  Array result(dtype, c.outputs[0].shape);
  parallel_for(result.size(), 32, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto x = philox(seed, static_cast<uint64_t>(i));
      const uint64_t first = uint64_t{x[0]} << 32 | (wide ? x[1] : 0);
      const uint64_t second = wide ? uint64_t{x[2]} << 32 | x[3] : uint64_t{x[1]} << 32;
      double& out = result.f()[static_cast<size_t>(i)];
      out = fraction(first, bits);
      if (normal) {
        const double radius = std::sqrt(-2 * std::log(out + std::ldexp(1, -bits)));
        out = radius * std::cos(2 * std::numbers::pi * fraction(second, bits));
      }
    }
  });
  return results_of(std::move(result));
}

}  // namespace

std::span<const OpSchema> source_schemas() {
  constexpr auto kDType = AttrKind::kDType;
  constexpr auto kInts = AttrKind::kInts;
  static const std::vector<OpSchema> table = {
      {Op::kParameter, 0, 0, {{"name", AttrKind::kText}, {"dtype", kDType}, {"shape", kInts}}, infer_declared, nullptr},
      {Op::kConstant, 0, 0, {{"value", AttrKind::kTensor}}, infer_constant, eval_constant},
      {Op::kIota, 0, 0, {{"dtype", kDType}, {"shape", kInts}, {"dim", AttrKind::kInt}}, infer_iota, eval_iota},
      {Op::kRandom,
       0,
       0,
       {{"kind", AttrKind::kText}, {"dtype", kDType}, {"shape", kInts}, {"seed", AttrKind::kInt}},
       infer_random,
       eval_random},
  };
  return table;
}

}  // namespace heddle::ir
