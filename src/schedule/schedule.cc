#include "base/check.h"
#include "schedule/attention/attention.h"
#include "schedule/back_to_back/back_to_back.h"
#include "schedule/kernel_desc.h"
#include "schedule/product/contraction.h"
#include "schedule/region/stitch.h"

namespace heddle::schedule {

ScheduledGroup schedule(const ir::Graph& graph, const ir::Group& group, const Target& target, ConfigSource* configs,
                        const StitchOptions& stitch) {
  switch (group.kind) {
    case ir::GroupKind::kStitch:
      return schedule_stitch(graph, group, target, stitch);
    case ir::GroupKind::kContraction:
      return schedule_contraction(graph, group, target, configs);
    case ir::GroupKind::kAttention:
      return schedule_attention(graph, group, target, configs);
    case ir::GroupKind::kBackToBack:
      return schedule_back_to_back(graph, group, target, configs);
    default:
      fail(ErrorCode::kUnsupportedOperator, std::string(ir::to_string(group.kind)) + " group",
           "no kernels are made for it");
  }
}

}  // namespace heddle::schedule
