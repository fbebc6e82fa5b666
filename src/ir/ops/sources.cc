#include "ir/ops/families.h"
#include "ir/ops/rules.h"

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

}  // namespace

std::span<const OpSchema> source_schemas() {
  constexpr auto kDType = AttrKind::kDType;
  constexpr auto kInts = AttrKind::kInts;
  static const std::vector<OpSchema> table = {
      {Op::kParameter, 0, 0, {{"name", AttrKind::kText}, {"dtype", kDType}, {"shape", kInts}}, infer_declared, nullptr},
      {Op::kConstant, 0, 0, {{"value", AttrKind::kTensor}}, infer_constant, nullptr},
      {Op::kIota, 0, 0, {{"dtype", kDType}, {"shape", kInts}, {"dim", AttrKind::kInt}}, infer_iota, nullptr},
      {Op::kRandom,
       0,
       0,
       {{"kind", AttrKind::kText}, {"dtype", kDType}, {"shape", kInts}, {"seed", AttrKind::kInt}},
       infer_random,
       nullptr},
  };
  return table;
}

}  // namespace heddle::ir
