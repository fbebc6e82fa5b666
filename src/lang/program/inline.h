#pragma once

#include <string>
#include <vector>

#include "lang/program/program.h"

namespace heddle::lang {

// An expression for each element of an operand or result. Its inputs are elements at the same position of other
// tensors.
struct Elementwise {
  // An input of the expression, in f32 (f64 if memory has f64, i1 if it has booleans).
  struct Leaf {
    enum class Kind : uint8_t { kSelf, kTensor, kNumber };  // kSelf: the value that the kernel stores
    Kind kind = Kind::kNumber;
    size_t operand = 0;  // kTensor: an operand of the program
    Element element = Element::kF32;
    int64_t divide = 1, modulo = 0;  // kTensor: at position i, element i / divide % modulo; modulo 0: i / divide
    double number = 0;
  };
  struct Node {
    OpCode code = OpCode::kAdd;
    Attributes attributes;
    Element element = Element::kF32;
    std::vector<size_t> operands;  // indices of leaves, then nodes, in order
  };
  std::vector<Leaf> leaves;
  std::vector<Node> nodes;  // the last one is the value
};

// Computes the value wherever kernels of the program load operand `index`, which they no longer read. Returns why that
// is impossible, or "" if it is done. All tensors must have fewer than 2^31 elements.
std::string inline_at_loads(Program& program, size_t index, const Elementwise& value);

// Computes the value wherever kernels of the program store result `index`, which gets the type `stored`.
std::string inline_at_stores(Program& program, size_t index, const Elementwise& value, Element stored);

}  // namespace heddle::lang
