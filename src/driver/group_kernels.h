#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/codegen.h"
#include "driver/number_table.h"
#include "driver/plan_builder.h"
#include "schedule/kernel_desc.h"

namespace heddle::driver {

// The kernels of a group and their texts.
struct CompiledGroup {
  schedule::ScheduledGroup scheduled;
  std::vector<codegen::KernelSource> sources;
};

// Schedules the groups of one graph and writes their kernels. Stitch groups that are equal but for their values (the
// layers of a model, the pieces of a long chain) are scheduled once.
class GroupKernels {
 public:
  GroupKernels(const ir::Graph& graph, const BuildContext& context)
      : graph_(graph), context_(context), users_(ir::users(graph)) {}

  // Throws as schedule::schedule() does.
  CompiledGroup make(const ir::Group& group);

 private:
  CompiledGroup compile(const ir::Group& group);

  struct Known {
    std::vector<ir::ValueId> inputs, outputs;
    CompiledGroup compiled;
  };

  const ir::Graph& graph_;
  const BuildContext& context_;
  const std::vector<std::vector<ir::NodeId>> users_;
  std::unordered_map<std::string, Known> known_;  // by what decides a schedule
  LimitedLiterals literals_;
};

}  // namespace heddle::driver
