#include "driver/verify/random_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/interface/option.h"

namespace heddle::driver {
namespace {

void put(Tensor& tensor, int64_t index, uint64_t bits) {
  const size_t bytes = size_of(tensor.dtype());
  std::memcpy(static_cast<std::byte*>(tensor.mutable_data()) + static_cast<size_t>(index) * bytes, &bits, bytes);
}

void put_float(Tensor& tensor, int64_t index, double value) {
  if (tensor.dtype() == DType::kF64) {
    tensor.mutable_values<double>()[static_cast<size_t>(index)] = value;
  } else if (tensor.dtype() == DType::kF32) {
    tensor.mutable_values<float>()[static_cast<size_t>(index)] = static_cast<float>(value);
  } else {
    put(tensor, index, encode_float(tensor.dtype(), value));
  }
}

Tensor random_tensor(const runtime::Port& port, uint64_t seed) {
  if (port.dtype == DType::kString) {
    fail(ErrorCode::kUnsupportedType, "input " + port.name, "text cannot be made at random",
         "Pass it: " + option::input(port.name));
  }
  Tensor tensor(port.dtype, port.shape);
  // Seeded by the name, so that one input's data does not depend on what other inputs there are.
  std::mt19937_64 generator(Hasher().add(static_cast<int64_t>(seed)).add(port.name).finish().low);
  std::normal_distribution<double> normal;
  const uint64_t bound = port.index_bound > 0 ? static_cast<uint64_t>(port.index_bound) : 2;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (port.branch_value) {
      put(tensor, i, static_cast<uint64_t>(*port.branch_value));
    } else if (is_float(port.dtype)) {
      put_float(tensor, i, normal(generator));
    } else {
      put(tensor, i, generator() % bound);
    }
  }
  return tensor;
}

}  // namespace

std::map<std::string, Tensor> random_inputs(const runtime::Plan& plan, uint64_t seed,
                                            std::map<std::string, Tensor> given) {
  for (const runtime::FixedInput& fixed : plan.fixed) given.emplace(plan.inputs[fixed.input].name, fixed.value);
  for (const runtime::Text& text : plan.text_inputs) given.emplace(text.name, text.value);
  for (const runtime::Port& port : plan.inputs) {
    if (!given.contains(port.name)) given.emplace(port.name, random_tensor(port, seed));
  }
  return given;
}

std::string branch_guess(const runtime::Plan& plan, const std::map<std::string, Tensor>& given) {
  std::vector<std::string> values;
  std::string example;
  for (const runtime::Port& port : plan.inputs) {
    if (!port.branch_value || given.contains(port.name)) continue;
    values.push_back(fmt::format("{} = {}", port.name, *port.branch_value));
    if (example.empty()) example = port.name;
  }
  if (values.empty()) return "";
  return fmt::format("{} (guessed, as branches depend on it; {} sets it)", fmt::join(values, ", "),
                     option::input(example));
}

}  // namespace heddle::driver
