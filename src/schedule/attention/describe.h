#pragma once

#include <functional>

#include "schedule/attention/attention.h"
#include "schedule/attention/form.h"

namespace heddle::schedule {

// Facts about the values that an attention form refers to.
struct AttentionValues {
  std::function<uint32_t(ir::ValueId)> operand;  // the kernel's operand number
  std::function<DType(ir::ValueId)> dtype;
  std::function<const Tensor*(ir::ValueId)> constant;  // null if known only at run time
  bool with_lengths = true;                            // true if the kernel reads sequence lengths
};

// Describes an attention form for a kernel, without the epilogue. `type` is the type of Q. Moves the scores out of
// `form`.
AttentionDesc describe_attention(AttentionForm& form, const AttentionValues& values);

// Scores, sinks and lengths are values of stores that write no memory. Such a store needs an operand only because the
// operand has the value's type. Sets the operand of these stores to the kernel's result. Requires the epilogue.
void name_result(AttentionDesc& attention);

}  // namespace heddle::schedule
