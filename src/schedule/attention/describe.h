#pragma once

#include <functional>

#include "schedule/attention/attention.h"
#include "schedule/attention/form.h"

namespace heddle::schedule {

// Facts about the values that a form names.
struct AttentionValues {
  std::function<uint32_t(ir::ValueId)> operand;  // the kernel's operand number
  std::function<DType(ir::ValueId)> dtype;
  std::function<const Tensor*(ir::ValueId)> constant;  // null if known only at run time
  bool with_lengths = true;                            // whether the kernel reads lengths
};

// The description of a form for a kernel, without the epilogue; `type` is Q's. Moves the form's scores.
AttentionDesc describe_attention(AttentionForm& form, const AttentionValues& values);

// Scores, sinks and lengths store nothing, but each names an operand to tell its type. Sets this to the operand of the
// result, once the epilogue exists.
void name_result(AttentionDesc& attention);

}  // namespace heddle::schedule
