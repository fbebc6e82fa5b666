#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/codegen.h"

namespace heddle::codegen {

// What people who read a kernel call its operands. Kernels that are compiled have no names of the model, so that equal
// kernels are equal texts.
struct Naming {
  std::string symbol;                 // of the compiled text
  std::vector<std::string> operands;  // identifiers, no two of them equal
};

// What a kernel calls operand number `i`, with names or without.
std::string operand_name(const Naming* naming, const schedule::KernelDesc& desc, size_t i);

struct NamedOperand {
  std::string name;  // as the model has it: "/encoder/layer.0/Add", "layer.0.weight", or anything else
  bool output = false;
};

// Short identifiers for operands of these names, which differ from each other and from all names that kernels have:
// "add", "weight"; "x3" where a name yields none.
std::vector<std::string> identifiers_of(const std::vector<NamedOperand>& operands);

// The text that emit() makes of a stitch kernel, with these names; nullopt for other kernels.
std::optional<std::string> emit_named(const schedule::KernelPlan& plan, const Naming& naming);

}  // namespace heddle::codegen
