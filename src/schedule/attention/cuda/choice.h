#pragma once

#include <vector>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

struct AttentionChoice {
  AttentionConfig config;
  double predicted_us = 0;
  std::string reason;
};

// Every tile that registers and shared memory hold, the least predicted time first; at most `most` of them. Empty where
// none do.
std::vector<AttentionChoice> attention_candidates(const AttentionDesc& attention, const CudaTarget& target,
                                                  size_t most);

// The predicted time of the same as a product, a softmax and a product.
double separate_us(const AttentionDesc& attention, const CudaTarget& target);

}  // namespace heddle::schedule
