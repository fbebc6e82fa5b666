#pragma once

#include <cstdint>
#include <string>

#include "ir/graph.h"

namespace heddle::testing {

// Two contractions in a row, as models write them: D1 = g(f(A W0) W1), with biases, activations and matrices that are
// added. All nodes are one group of kind kBackToBack.
struct ProductChain {
  std::string type = "f16";
  bool conv = false;  // the first one is a convolution, the second one of a pixel; else dots
  // Of dots. `batch` 0: matrices; else matrices for each batch.
  int64_t batch = 0, m = 64;
  int64_t images = 1, height = 7, width = 9, window = 3, stride = 1, groups = 1;  // of a convolution
  int64_t k = 32, n0 = 32, n1 = 16;  // elements of a row of A (channels); columns of D0 and D1
  std::string activation = "max";    // "", "max", "tanh", "abs": of D0
  bool bias0 = true, bias1 = true, residual0 = false, residual1 = false;
  bool constant = true;                         // W0 and W1, else inputs
  bool w0_along_k = false, w1_along_k = false;  // of dots: how the matrices lie
  std::string out = {};                         // type of the result; "": `type`

  std::string text() const;  // textual IR
  std::string name() const;  // "f16 64x32x32x16 max ..."
  int64_t rows() const;      // of D0, of a batch
  static ProductChain random(uint32_t seed);
};

}  // namespace heddle::testing
