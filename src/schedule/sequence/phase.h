#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/sequence/sequence.h"

namespace heddle::schedule {

// What joining phases depends on.
struct PhaseFacts {
  std::vector<int64_t> reads, writes;  // memory, as in PlannedKernel
  std::vector<int64_t> decide_ahead;   // the memory that decides which data a task requests ahead
  double ahead_us = 0;                 // the time to load these data; 0: a task requests none
  double us = 0;                       // predicted, without the boundary before the kernel
  int64_t tasks = 0;
  int at_once = 0;  // of its tasks on one SM, as a launch of its own
  int threads = 0;
  bool needs_all_threads = false;  // its threads synchronise as a block, so the block must not have more
  uint32_t shared_bytes = 0;
  int64_t counter_bytes = 0;
  size_t argument_bytes = 0;
};

struct PhaseDraft {
  SequenceDesc::Phase desc;  // operands are numbered from those of the kernel
  PhaseFacts facts;
};

// The form in which a kernel is a phase, if it is another one. Products by a family without phases become products by
// `skinny`, if that can run them; attentions take less shared memory if they are predicted to be as fast.
std::optional<ScheduledKernel> other_form(const ScheduledKernel& kernel, const GpuTarget& target);
// The predicted time of a kernel on its own, in us, without the boundary before it.
double us_alone(const ScheduledKernel& kernel, const GpuTarget& target);

// The reason why a kernel cannot be in a sequence; "" if it can.
std::string phase_obstacle(const ScheduledKernel& kernel, const GpuTarget& target);
// A kernel without obstacle as phases. Each part of a bundle is a phase.
std::vector<PhaseDraft> phases_of(const PlannedKernel& planned, const GpuTarget& target);

// Whether an attention, or a product by `skinny`, has code that requests data of a task from memory.
bool loads_ahead(const AttentionDesc& attention);
bool loads_ahead(const Product& product, const SkinnyConfig& config);

// The plan of a phase's kernel as a launch of its own.
KernelPlan plan_phase(const SequenceDesc::Phase& phase, const GpuTarget& target);

}  // namespace heddle::schedule
