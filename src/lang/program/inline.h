#pragma once

#include <string>
#include <vector>

#include "lang/program/program.h"

namespace heddle::lang {

// A value of each element of an operand or result, made of the elements at its place in tensors of the same order.
struct Elementwise {
  // What it begins with, in f32 (f64 where memory has f64, i1 where it has truth values).
  struct Leaf {
    enum class Kind : uint8_t { kSelf, kTensor, kNumber };  // kSelf: what the kernel stores
    Kind kind = Kind::kNumber;
    size_t operand = 0;  // kTensor: of the program
    Element element = Element::kF32;
    int64_t divide = 1, modulo = 0;  // kTensor: element i / divide % modulo for place i; 0: the quotient itself
    double number = 0;
  };
  struct Node {
    OpCode code = OpCode::kAdd;
    Attributes attributes;
    Element element = Element::kF32;
    std::vector<size_t> operands;  // leaves, then nodes, in order
  };
  std::vector<Leaf> leaves;
  std::vector<Node> nodes;  // the last one is the value
};

// Has the value computed wherever kernels of the program load an operand, which they read no more. Returns why that
// cannot be; "" where it is done. `index` counts operands of which every tensor has less than 2^31 elements.
std::string inline_at_loads(Program& program, size_t index, const Elementwise& value);

// Has the value computed wherever kernels of the program store a result, which becomes one of type `stored`.
std::string inline_at_stores(Program& program, size_t index, const Elementwise& value, Element stored);

}  // namespace heddle::lang
