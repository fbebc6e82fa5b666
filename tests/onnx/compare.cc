#include "compare.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "ir/reference/array.h"

namespace heddle::node_tests {
namespace {

bool close(double given, double expected, bool exact, double absolute) {
  if (std::isnan(given) || std::isnan(expected)) return std::isnan(given) && std::isnan(expected);
  if (given == expected) return true;
  if (exact || std::isinf(given) || std::isinf(expected)) return false;
  return std::abs(given - expected) <= absolute + kRelative * std::abs(expected);
}

std::string tensor_difference(const Tensor& given, const Tensor& expected, bool values) {
  if (given.dtype() != expected.dtype() || given.shape() != expected.shape()) {
    return fmt::format("{}{} instead of {}{}", to_string(given.dtype()), to_string(given.shape()),
                       to_string(expected.dtype()), to_string(expected.shape()));
  }
  if (!values) return {};
  if (given.dtype() == DType::kString) {
    for (size_t i = 0; i < given.strings().size(); ++i) {
      if (given.strings()[i] != expected.strings()[i]) {
        return fmt::format("element {} is \"{}\" instead of \"{}\"", i, given.strings()[i], expected.strings()[i]);
      }
    }
    return {};
  }
  const ir::Array a = ir::to_array(given), b = ir::to_array(expected);
  const bool exact = size_of(given.dtype()) == 1;
  double largest = 1;
  for (int64_t i = 0; b.real() && i < b.size(); ++i) {
    if (std::isfinite(b.f()[i])) largest = std::max(largest, std::abs(b.f()[i]));
  }
  for (int64_t i = 0; i < a.size(); ++i) {
    if (a.real() ? !close(a.f()[i], b.f()[i], exact, kAbsolute * largest) : a.i()[i] != b.i()[i]) {
      return a.real() ? fmt::format("element {} of {} is {} instead of {}", i, a.size(), a.f()[i], b.f()[i])
                      : fmt::format("element {} of {} is {} instead of {}", i, a.size(), a.i()[i], b.i()[i]);
    }
  }
  return {};
}

}  // namespace

std::string difference(const TestValue& given, const TestValue& expected, bool values) {
  if (given.kind != expected.kind) return "a tensor, sequence or empty optional where another is expected";
  if (given.kind == TestValue::Kind::kTensor) return tensor_difference(given.tensor, expected.tensor, values);
  if (given.items.size() != expected.items.size()) {
    return fmt::format("a sequence of {} instead of {} items", given.items.size(), expected.items.size());
  }
  for (size_t i = 0; i < given.items.size(); ++i) {
    std::string text = difference(given.items[i], expected.items[i], values);
    if (!text.empty()) return fmt::format("item {}: {}", i, text);
  }
  return {};
}

}  // namespace heddle::node_tests
