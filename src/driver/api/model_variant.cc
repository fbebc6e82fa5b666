#include "driver/api/model_variant.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/interface/option.h"

namespace heddle {
namespace {

bool same_value(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::kString) return a.strings() == b.strings();
  return a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

}  // namespace

bool fits(const ModelVariant& variant, const GivenInputs& given) {
  const runtime::Plan& plan = *variant.plan;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const Tensor* const input = given[variant.inputs[i]];
    if (input == nullptr || input->shape() != plan.inputs[i].shape) return false;
  }
  for (size_t i = 0; i < plan.text_inputs.size(); ++i) {
    const Tensor* const text = given[variant.texts[i]];
    if (text == nullptr || !same_value(plan.text_inputs[i].value, *text)) return false;
  }
  const auto count = static_cast<size_t>(std::count(given.begin(), given.end(), nullptr));
  if (given.size() - count != plan.inputs.size() + plan.text_inputs.size()) return false;  // another has its default
  return std::all_of(plan.fixed.begin(), plan.fixed.end(), [&](const runtime::FixedInput& fixed) {
    return same_value(fixed.value, *given[variant.inputs[fixed.input]]);
  });
}

std::vector<Tensor> operands_of(const ModelVariant& variant, const GivenInputs& given) {
  std::vector<Tensor> operands;
  operands.reserve(variant.inputs.size());
  for (const size_t port : variant.inputs) operands.push_back(*given[port]);
  return operands;
}

void refuse(const ModelVariant& variant, const std::vector<PortInfo>& ports, const GivenInputs& given) {
  const runtime::Plan& plan = *variant.plan;
  std::vector<bool> taken(ports.size(), false);
  for (const size_t port : variant.texts) taken[port] = true;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const Tensor* const input = given[variant.inputs[i]];
    taken[variant.inputs[i]] = true;
    const std::string where = fmt::format("input {}", plan.inputs[i].name);
    if (input == nullptr) {
      fail(ErrorCode::kInvalidInput, where, "it is missing, and the plan was made without its default",
           "Give it, or compile the ONNX model without a shape for it");
    }
    if (input->shape() == plan.inputs[i].shape) continue;
    fail(ErrorCode::kInvalidInput, where,
         fmt::format("its shape is {}, the plan takes {}", to_string(input->shape()), to_string(plan.inputs[i].shape)),
         "A plan holds for fixed shapes: load the ONNX model for others");
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    if (given[i] == nullptr || taken[i]) continue;
    fail(ErrorCode::kInvalidInput, fmt::format("input {}", ports[i].name),
         "it is given, and the plan was made with its default",
         fmt::format("Compile the ONNX model with {}",
                     option::shape({option::NamedShape(ports[i].name, given[i]->shape())})));
  }
  fail(ErrorCode::kInvalidInput, "plan",
       "an input that decides shapes or is text has another value than at compile time",
       "Load the ONNX model instead of the plan");
}

}  // namespace heddle
