#pragma once

#include "codegen/codegen.h"
#include "schedule/attention/attention.h"
#include "schedule/product/contraction.h"
#include "schedule/region/standalone.h"

namespace heddle::codegen {

// Generates kernels for one kind of target, from descriptions that do not depend on the kind of target. Each kind has
// one stateless Backend object.
class Backend {
 public:
  virtual ~Backend() = default;

  // standalone(), contraction() and attention() generate the source of a kernel. `marked` and `marks` put marks around
  // the numbers in the text that may become kernel arguments (codegen/text/numbers.h).
  virtual KernelSource standalone(const schedule::KernelPlan& plan, const schedule::StandaloneDesc& desc,
                                  bool marked) const = 0;
  virtual KernelSource contraction(const schedule::KernelPlan& plan, const schedule::ContractionDesc& desc,
                                   const Target& target, Marks marks) const = 0;
  virtual KernelSource attention(const schedule::KernelPlan& plan, const schedule::AttentionDesc& desc,
                                 const Target& target, bool marked) const = 0;
  // True if numbers such as sizes and strides can be arguments of the kernel instead of literals in its text.
  virtual bool takes_arguments(const schedule::KernelDesc& desc) const = 0;
};

const Backend& backend_of(const Target& target);

}  // namespace heddle::codegen
