#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/codegen.h"

namespace heddle::codegen {

// Readable names of a kernel's operands. Compiled kernels contain no names of the model, so that equal kernels have
// equal texts.
struct Naming {
  std::string symbol;                 // of the compiled text
  std::vector<std::string> operands;  // identifiers, no two of them equal
};

// The name of operand `i` in a kernel's text, with a Naming or without.
std::string operand_name(const Naming* naming, const schedule::KernelDesc& desc, size_t i);

struct NamedOperand {
  std::string name;  // as the model has it: "/encoder/layer.0/Add", "layer.0.weight", or anything else
  bool output = false;
};

// Short identifiers for operands of these names: "add", "weight"; "x3" if a name yields none. They differ from each
// other and from all other names in kernels.
std::vector<std::string> identifiers_of(const std::vector<NamedOperand>& operands);

// The text of emit() for a stitch kernel, with these names; nullopt for other kernels.
std::optional<std::string> emit_named(const schedule::KernelPlan& plan, const Naming& naming);

}  // namespace heddle::codegen
