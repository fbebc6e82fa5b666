#pragma once

#include <map>
#include <optional>
#include <string>

#include "driver/plan/group_kernels.h"
#include "ir/group.h"
#include "schedule/kernel_desc.h"

namespace heddle::driver {

// A group whose work is done in the kernel of several groups, or a loop that one kernel could run.
struct JoinedGroups {
  std::optional<schedule::ScheduledGroup>
      kernel;          // of the group at which all of them run; null for a loop: there is none
  std::string why;     // the reason why there is none
  size_t runs_at = 0;  // the group whose position in the plan is the kernel's
};

// Finds groups that run in one kernel: loops with all their steps, and independent products of equal form that are
// predicted to take less time side by side. Returns them by position in the grouping. No group between a joined group's
// position and that of its kernel reads the group's results.
std::map<size_t, JoinedGroups> join_groups(const ir::Graph& graph, const ir::Grouping& grouping, GroupKernels& kernels,
                                           const BuildContext& context);

}  // namespace heddle::driver
