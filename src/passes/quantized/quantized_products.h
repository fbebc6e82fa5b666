#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::passes {

// How a product or convolution with a dequantised operand is computed.
struct QuantisedProduct {
  enum class Form : uint8_t {
    kFloats,    // of dequantised operands
    kIntegers,  // of quantised operands
    kPacked,    // of floats and weights of `bits` bits that are dequantised in registers
  };
  std::string what;  // "conv (/layer1/Conv)"
  Form form = Form::kFloats;
  bool of_two = false;      // both operands are quantised
  int64_t bits = 32;        // of the second operand
  std::string reason = {};  // for kFloats
  int64_t saved_bytes = 0;  // of constants, compared with f32
};

using QuantisedProducts = std::vector<QuantisedProduct>;

// Adds a product. It takes the place of one of the same name that an earlier pass left in floats.
void add_product(QuantisedProducts& products, QuantisedProduct product);
// Notes that a product with packed weights reads them as floats after all.
void read_as_floats(QuantisedProducts& products, const std::string& what);

}  // namespace heddle::passes
