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

// Compiled groups of one graph, or of one model's graphs for several sets of shapes. Groups that are equal but for
// their values are scheduled once: the layers of a model, the pieces of a long chain, groups that do not depend on the
// shapes.
class GroupMemo {
 public:
  // Call it when a plan is built. Drops the groups that the last two plans did not use, or all groups if `version` has
  // changed, since kernels are then written differently.
  void next_plan(uint64_t version);

 private:
  friend class GroupKernels;
  struct Known {
    std::vector<ir::ValueId> inputs, outputs;
    CompiledGroup compiled;
    uint64_t used = 0;
  };
  std::unordered_map<std::string, Known> known_;  // by what decides a schedule
  uint64_t plan_ = 0, version_ = 0;
};

// Schedules the groups of one graph and writes their kernels.
class GroupKernels {
 public:
  GroupKernels(const ir::Graph& graph, const BuildContext& context)
      : graph_(graph),
        context_(context),
        memo_(context.groups != nullptr ? *context.groups : own_),
        users_(ir::users(graph)) {}

  // Throws as schedule::schedule() does.
  CompiledGroup make(const ir::Group& group);

 private:
  CompiledGroup compile(const ir::Group& group);

  const ir::Graph& graph_;
  const BuildContext& context_;
  GroupMemo own_;
  GroupMemo& memo_;
  const std::vector<std::vector<ir::NodeId>> users_;
  LimitedLiterals literals_;
  NumberTable places_;  // where operands of products begin
};

}  // namespace heddle::driver
