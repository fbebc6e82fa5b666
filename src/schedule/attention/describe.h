#pragma once

#include <functional>

#include "schedule/attention/attention.h"
#include "schedule/attention/form.h"

namespace heddle::schedule {

// Facts about the values that an attention form refers to.
struct AttentionValues {
  std::function<uint32_t(ir::ValueId)> operand;  // the index of the operand of the kernel
  std::function<DType(ir::ValueId)> dtype;
  std::function<const Tensor*(ir::ValueId)> constant;  // null if known only at run time
  bool with_lengths = true;                            // true if the kernel reads sequence lengths
};

// Describes an attention form for a kernel, without the epilogue. Moves the scores out of `form`.
AttentionDesc describe_attention(AttentionForm& form, const AttentionValues& values);

// In a description, the score, the sink and the length are each the value of a store that is not executed. The operand
// of such a store only specifies the type of the value. Sets this operand to the kernel's result. `attention` must
// already have its epilogue.
void name_result(AttentionDesc& attention);

}  // namespace heddle::schedule
