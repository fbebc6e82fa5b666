#pragma once

#include "schedule/attention/attention.h"

namespace heddle::schedule {

struct AttentionChoice {
  AttentionConfig config;
  double predicted_us = 0;
  std::string reason;
};

// The tiles with the least predicted time. Throws kUnsupportedOperator where none fit the chip.
AttentionChoice choose_attention(const AttentionDesc& attention, const CudaTarget& target);

// The predicted time of the same as a product, a softmax and a product.
double separate_us(const AttentionDesc& attention, const CudaTarget& target);

}  // namespace heddle::schedule
