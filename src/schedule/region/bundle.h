#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// Several stitch kernels as one. Side by side (no part reads another's results): the tasks of the parts follow each
// other, so that threads take them without a barrier between parts. In a row (each part is one task): the parts run one
// after the other on one thread, where program order is the barrier.
struct CpuBundleDesc {
  struct Part {
    std::shared_ptr<const CpuStitchDesc> body;
    std::vector<Operand> operands;
    Config config;
    std::vector<uint32_t> from;  // by operand of the part: operand of the bundle
  };
  std::vector<Part> parts;
  bool in_a_row = false;
};

// The memory of a kernel's operand.
using Place = std::pair<Binding::Kind, uint64_t>;
inline Place place_of(const Binding& b) {
  return {b.kind, b.kind == Binding::Kind::kValue ? b.value : b.workspace};
}

// Joins the kernels of a stitch group for a CPU. Joins all in a row if each is one task and they are short or there is
// only one thread. Otherwise joins kernels side by side that wait for the same number of kernels before them.
ScheduledGroup bundle_kernels(ScheduledGroup group, const Target& target);

}  // namespace heddle::schedule
