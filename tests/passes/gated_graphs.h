#pragma once

#include <cstdint>
#include <string>

#include "ir/graph.h"

namespace heddle::testing {

// act(x G + b) * (x U + c) in the forms of models: y = gate times up.
struct GatedForm {
  std::string type = "f16";
  Shape lead = {64};  // dimensions of x in front of the last one
  int64_t n = 64, k = 64;
  std::string act = "silu";  // "gelu", "relu", "": none
  bool bias = false, up_first = false;
  bool split = false;     // one product whose halves meet
  bool along_k = false;   // matrices lie [n, k]
  bool residual = false;  // is added, and a bias behind the gate

  // All of it at random.
  static GatedForm random(unsigned seed);
};

// "f16 3x37 n 72 k 40 gelu bias up first"
std::string name_of(const GatedForm& form);
// As textual IR; matrices and vectors are constants filled with one number.
std::string gated_text(const GatedForm& form);
// The same with random constants.
ir::Graph gated_graph(const GatedForm& form, unsigned seed);

}  // namespace heddle::testing
