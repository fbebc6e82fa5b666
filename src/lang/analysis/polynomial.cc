#include "lang/analysis/polynomial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace heddle::lang {

Polynomial::Polynomial(int64_t constant) {
  add({}, constant);
}

Polynomial Polynomial::of(ValueId value) {
  Polynomial result;
  result.add({value}, 1);
  return result;
}

std::optional<int64_t> Polynomial::constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
  return std::nullopt;
}

// Factors wrap, as the arithmetic that they stand for does.
void Polynomial::add(const Product& product, int64_t factor) {
  const auto wrapped = [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  };
  const int64_t sum = wrapped(terms_[product], factor);
  sum == 0 ? void(terms_.erase(product)) : void(terms_[product] = sum);
}

Polynomial Polynomial::operator+(const Polynomial& other) const {
  Polynomial result = *this;
  for (const auto& [product, factor] : other.terms_) result.add(product, factor);
  return result;
}

Polynomial Polynomial::operator-(const Polynomial& other) const {
  return *this + other * Polynomial(-1);
}

Polynomial Polynomial::operator*(const Polynomial& other) const {
  Polynomial result;
  for (const auto& [a, x] : terms_) {
    for (const auto& [b, y] : other.terms_) {
      Product product;
      std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(product));
      result.add(product, static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)));
    }
  }
  return result;
}

std::string Polynomial::text(const Kernel& kernel) const {
  std::vector<std::string> parts;
  for (const auto& [product, factor] : terms_) {
    std::vector<std::string> factors;
    for (const ValueId value : product) factors.push_back(kernel.value_name(value));
    if (factor != 1 || product.empty()) factors.push_back(fmt::format("{}", factor));
    parts.push_back(fmt::format("{}", fmt::join(factors, " * ")));
  }
  return parts.empty() ? "0" : fmt::format("{}", fmt::join(parts, " + "));
}

}  // namespace heddle::lang
