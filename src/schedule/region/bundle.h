#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// Several stitch kernels as one kernel, in one of two forms. Side by side: no part reads results of another part. The
// tasks of all parts are numbered consecutively, so threads need no barrier between parts. In a row: each part is one
// task. The parts run one after the other on one thread, so program order replaces barriers.
struct CpuBundleDesc {
  struct Part {
    std::shared_ptr<const CpuStitchDesc> body;
    std::vector<Operand> operands;
    Config config;
    std::vector<uint32_t> from;  // for each operand of the part: the number of this operand in the bundle
  };
  std::vector<Part> parts;
  bool in_a_row = false;
};

// Identifies the memory of a kernel's operand.
using Place = std::pair<Binding::Kind, uint64_t>;
inline Place place_of(const Binding& b) {
  return {b.kind, b.kind == Binding::Kind::kValue ? b.value : b.workspace};
}

// Joins the CPU kernels of a stitch group. If each kernel is one task, and if the kernels are short or there is only
// one thread, joins all of them in a row. Otherwise joins kernels side by side if they have the same depth in the
// dependency graph.
ScheduledGroup bundle_kernels(ScheduledGroup group, const Target& target);

}  // namespace heddle::schedule
