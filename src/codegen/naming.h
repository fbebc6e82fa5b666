#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/codegen.h"

namespace heddle::codegen {

// Readable names for a kernel and its operands. Compiled kernels contain no names of the model, so that equal kernels
// have equal source texts.
struct Naming {
  std::string symbol;                 // the kernel's name in the source text
  std::vector<std::string> operands;  // distinct identifiers
};

// The name of operand `i` in a kernel's source text. `naming` may be null.
std::string operand_name(const Naming* naming, const schedule::KernelDesc& desc, size_t i);

struct NamedOperand {
  std::string name;  // the model's name, any string: "/encoder/layer.0/Add", "layer.0.weight"
  bool output = false;
};

// Makes short identifiers from operand names: "add", "weight"; "x3" if a name yields no identifier. The identifiers are
// distinct, and distinct from all other names in kernels.
std::vector<std::string> identifiers_of(const std::vector<NamedOperand>& operands);

// The source text that emit() writes for a stitch kernel, but with the names of `naming`; nullopt for other kernels.
std::optional<std::string> emit_named(const schedule::KernelPlan& plan, const Naming& naming);

}  // namespace heddle::codegen
