#pragma once

#include "codegen/codegen.h"
#include "schedule/attention/attention.h"
#include "schedule/product/contraction.h"
#include "schedule/region/standalone.h"

namespace heddle::codegen {

// Writes kernels for one kind of target, from descriptions that do not depend on the kind. One stateless object per
// kind.
class Backend {
 public:
  virtual ~Backend() = default;

  // `marked`, `marks`: numbers that may become arguments have marks around them (codegen/text/numbers.h).
  virtual KernelSource standalone(const schedule::KernelPlan& plan, const schedule::StandaloneDesc& desc,
                                  bool marked) const = 0;
  virtual KernelSource contraction(const schedule::KernelPlan& plan, const schedule::ContractionDesc& desc,
                                   const Target& target, Marks marks) const = 0;
  virtual KernelSource attention(const schedule::KernelPlan& plan, const schedule::AttentionDesc& desc,
                                 const Target& target, bool marked) const = 0;
  // True if numbers of the kernel can become arguments.
  virtual bool takes_arguments(const schedule::KernelDesc& desc) const = 0;
};

const Backend& backend_of(const Target& target);

}  // namespace heddle::codegen
