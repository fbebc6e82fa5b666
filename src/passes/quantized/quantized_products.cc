#include "passes/quantized/quantized_products.h"

#include <algorithm>

namespace heddle::passes {

void add_product(QuantisedProducts& products, QuantisedProduct product) {
  const auto earlier = std::find_if(products.begin(), products.end(), [&](const QuantisedProduct& p) {
    return p.what == product.what && p.form == QuantisedProduct::Form::kFloats;
  });
  if (earlier == products.end()) {
    products.push_back(std::move(product));
  } else if (product.form != QuantisedProduct::Form::kFloats) {
    *earlier = std::move(product);
  }
}

void read_as_floats(QuantisedProducts& products, const std::string& what) {
  for (QuantisedProduct& p : products) {
    if (p.what == what && p.form == QuantisedProduct::Form::kPacked) {
      p = {.what = what, .reason = "products of so many rows are faster with widened weights"};
    }
  }
}

}  // namespace heddle::passes
