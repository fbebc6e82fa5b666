#pragma once

#include <string>
#include <vector>

#include "lang/program/program.h"

namespace heddle::lang {

// An expression evaluated for each element of an operand or result. Its inputs are elements of other tensors at the
// same position.
struct Elementwise {
  // An input of the expression. Its type is f32, except f64 for tensors of f64 and i1 for tensors of booleans.
  struct Leaf {
    enum class Kind : uint8_t { kSelf, kTensor, kNumber };  // kSelf: the value that the kernel stores
    Kind kind = Kind::kNumber;
    size_t operand = 0;  // kTensor: the index of a program operand
    Element element = Element::kF32;
    // kTensor: position i reads element i / divide % modulo, or i / divide if modulo is 0.
    int64_t divide = 1, modulo = 0;
    double number = 0;
  };
  struct Node {
    OpCode code = OpCode::kAdd;
    Attributes attributes;
    Element element = Element::kF32;
    std::vector<size_t> operands;  // each: the index of a leaf, or the number of leaves plus the index of a node
  };
  std::vector<Leaf> leaves;
  std::vector<Node> nodes;  // the last node is the result
};

// Replaces every load of operand `index` in the program's kernels by the computation `value`. The kernels then no
// longer read the operand. Returns "", or the reason why this is impossible. Tensors must have fewer than 2^31
// elements.
std::string inline_at_loads(Program& program, size_t index, const Elementwise& value);

// Applies the computation `value` to everything that the program's kernels store to result `index`. The result's type
// becomes `stored`. The return value is that of inline_at_loads().
std::string inline_at_stores(Program& program, size_t index, const Elementwise& value, Element stored);

}  // namespace heddle::lang
