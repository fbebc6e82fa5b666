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

}  // namespace heddle::passes
