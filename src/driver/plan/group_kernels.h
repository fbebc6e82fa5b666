#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/codegen.h"
#include "driver/model/compiled_group.h"
#include "driver/plan/built_plan.h"
#include "driver/plan/number_table.h"
#include "schedule/kernel_desc.h"

namespace heddle::driver {

// A cache of compiled groups for one graph, or for one model's graphs with several sets of shapes. Groups that differ
// only in the values they refer to are scheduled once: repeated layers of a model, pieces of a long chain, and groups
// that do not depend on the shapes.
class GroupMemo {
 public:
  // Call this at the start of each plan. Drops the groups that the last two plans did not use. Drops all groups if
  // `version` has changed, since the kernel texts then change.
  void next_plan(uint64_t version);

 private:
  friend class GroupKernels;
  struct Known {
    std::vector<ir::ValueId> inputs, outputs;
    CompiledGroup compiled;
    uint64_t used = 0;
  };
  std::unordered_map<std::string, Known> known_;  // the key lists everything that affects the schedule
  uint64_t plan_ = 0, version_ = 0;
};

// Schedules the groups of one graph and generates their kernels.
class GroupKernels {
 public:
  GroupKernels(const ir::Graph& graph, const BuildContext& context)
      : graph_(graph),
        context_(context),
        memo_(context.groups != nullptr ? *context.groups : own_),
        users_(ir::users(graph)) {}

  // Throws the errors of schedule::schedule().
  CompiledGroup make(const ir::Group& group);
  // Keeps the result for make(). For contraction groups.
  const CompiledGroup& make_early(const ir::Group& group);

 private:
  CompiledGroup make_now(const ir::Group& group);
  CompiledGroup compile(const ir::Group& group);

  const ir::Graph& graph_;
  const BuildContext& context_;
  GroupMemo own_;
  GroupMemo& memo_;
  const std::vector<std::vector<ir::NodeId>> users_;
  std::unordered_map<ir::NodeId, CompiledGroup> early_;  // by anchor
  LimitedLiterals literals_;
  NumberTable places_;  // the offsets at which operands of products begin
};

}  // namespace heddle::driver
