#pragma once

#include <functional>

#include "schedule/attention/attention.h"
#include "schedule/attention/form.h"

namespace heddle::schedule {

// What is known of the values that a form names.
struct AttentionValues {
  std::function<uint32_t(ir::ValueId)> operand;  // which of the kernel's it is
  std::function<DType(ir::ValueId)> dtype;
  std::function<const Tensor*(ir::ValueId)> constant;  // null where only a run knows it
  bool with_lengths = true;                            // whether the kernel reads them
};

// A form as a kernel sees it, without its epilogue; `type` is Q's. Takes the form's scores.
AttentionDesc describe_attention(AttentionForm& form, const AttentionValues& values);

// Scores, sinks and lengths store nothing, but each names an operand for its type: the result's, when the epilogue is
// there.
void name_result(AttentionDesc& attention);

}  // namespace heddle::schedule
