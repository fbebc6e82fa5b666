#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "driver/model/kernel_set.h"
#include "driver/model/report.h"
#include "driver/plan/constant_pool.h"
#include "passes/fusion/fusion.h"
#include "runtime/plan.h"
#include "runtime/plan_io.h"

namespace heddle::driver {

class GroupMemo;

struct BuildContext {
  const Target& target;
  passes::FusionPolicy fusion = passes::FusionPolicy::kStitch;
  KernelSet& kernels;
  CompileReport& report;
  schedule::ConfigSource* configs = nullptr;  // configurations that a tuner found
  schedule::StitchOptions stitch = {};
  passes::FusionRules rules = {};
  // The next three members are shared by the plans of one model for several sets of shapes. CPU only.
  codegen::NumberChoice* numbers = nullptr;
  ConstantPool* constants = nullptr;
  GroupMemo* groups = nullptr;
};

// A plan without its kernel library, and the buffers of the graph's values, which `verify` needs.
struct BuiltPlan {
  std::shared_ptr<runtime::Plan> plan;
  ir::Grouping grouping;
  std::vector<int64_t> step_group;            // by step: index into grouping.groups
  std::map<ir::ValueId, uint32_t> buffer_of;  // values that have a buffer
  // For a step that joins the kernels of several groups: all of these groups, in order.
  std::map<size_t, std::vector<int64_t>> joined_groups;
  // By step: the index of its group in CompileReport::groups, and of its kernel in that group (-1: none).
  std::vector<std::pair<size_t, int64_t>> step_report;
  runtime::ConstantMakers makers;  // set by plan_without_constants(); none for control-flow bodies
};

}  // namespace heddle::driver
