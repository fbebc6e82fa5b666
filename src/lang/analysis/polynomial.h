#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// A sum of products of scalar values with integer factors: %pid * 128 + %k * %stride. The form is canonical, so equal
// polynomials compare equal.
class Polynomial {
 public:
  // The values of a product in ascending order; empty for the constant term.
  using Product = std::vector<ValueId>;

  Polynomial() = default;
  explicit Polynomial(int64_t constant);
  static Polynomial of(ValueId value);

  bool is_zero() const { return terms_.empty(); }
  std::optional<int64_t> constant() const;  // set if there is no other term
  const std::map<Product, int64_t>& terms() const { return terms_; }

  Polynomial operator+(const Polynomial& other) const;
  Polynomial operator-(const Polynomial& other) const;
  Polynomial operator*(const Polynomial& other) const;
  bool operator==(const Polynomial&) const = default;

  // Formats the polynomial: "%pid * 128 + 3".
  std::string text(const Kernel& kernel) const;

 private:
  void add(const Product& product, int64_t factor);
  std::map<Product, int64_t> terms_;
};

}  // namespace heddle::lang
