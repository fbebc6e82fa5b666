// Stands in for stages whose implementation is not in the tree yet (CMakeLists.txt says which).
#include "base/check.h"
#include "codegen/codegen.h"
#include "passes/pass.h"
#include "schedule/kernel_desc.h"

namespace heddle {

#ifdef HEDDLE_PENDING_PASSES
namespace passes {
const Pass* find_pass(std::string_view) {
  return nullptr;
}
std::span<const Pass> pipeline() {
  return {};
}
ir::Graph run_pipeline(const ir::Graph& graph, const PassContext&, const PipelineOptions&) {
  return graph;
}
ir::Graph run_passes(const ir::Graph& graph, std::span<const std::string>, const PassContext&) {
  return graph;
}
}  // namespace passes
#endif

namespace schedule {
#ifdef HEDDLE_PENDING_SCHEDULE
ScheduledGroup schedule(const ir::Graph&, const ir::Group&, const Target&) {
  fail(ErrorCode::kUnsupportedOperator, "schedule", "not in the tree yet");
}
#endif
#ifdef HEDDLE_PENDING_CAN_COMPILE
bool can_compile(const ir::Graph&, const ir::Node&, const Target&, std::string*) {
  return true;
}
#endif
}  // namespace schedule

namespace codegen {
#ifdef HEDDLE_PENDING_EMIT
KernelSource emit(const schedule::KernelDesc&, const schedule::Config&, const Target&) {
  return {};
}
#endif
#ifdef HEDDLE_PENDING_UNIT
std::string translation_unit(const std::vector<const KernelSource*>&, const Target&) {
  return "";
}
#endif
}  // namespace codegen

}  // namespace heddle
