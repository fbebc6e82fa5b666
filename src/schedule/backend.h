#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/filter_gradient.h"
#include "schedule/attention/attention.h"
#include "schedule/back_to_back/back_to_back.h"
#include "schedule/kernel_plan.h"
#include "schedule/product/contraction_builder.h"
#include "schedule/region/region.h"
#include "schedule/region/standalone.h"
#include "schedule/sequence/sequence.h"

namespace heddle::schedule {

// The scheduling decisions that differ between kinds of targets. Each kind has one stateless Backend object, which is
// used only for targets of that kind.
class Backend {
 public:
  virtual ~Backend() = default;

  // --- Supported operators -------------------------------------------------------------------------------------------

  // The reason why a contraction or window has no kernel although there is a kernel template for its op; empty if it
  // has a kernel.
  virtual std::string contraction_obstacle(const ir::Graph& graph, const ir::Node& node) const = 0;
  // The largest k that a top-k selection supports.
  virtual int64_t most_selected() const = 0;
  // True if there are kernels that run all steps of a loop (schedule_recurrence()).
  virtual bool has_recurrences(const Target& target) const = 0;
  // True if a kernel of the convolution `conv` reads both operands of this filter gradient where they are in memory.
  virtual bool reads_filter_gradient(const ir::Graph& graph, const ir::Node& conv, const ir::FilterGradient& gradient,
                                     const Target& target) const = 0;
  // True if the schedule of a contraction group depends only on types, shapes and strides.
  virtual bool contractions_by_shape() const = 0;

  // --- Kernels -------------------------------------------------------------------------------------------------------

  virtual std::unique_ptr<RegionBackend> region(Region& region) const = 0;
  // Merges kernels of a stitch group that region() leaves separate.
  virtual ScheduledGroup bundled(ScheduledGroup group, const Target& target) const = 0;
  // Sets the choice, the tasks and the reason of `config` for a standalone kernel. The reason begins with `what`, a
  // description of the kernel. `seconds` is the predicted time for moving the kernel's operands.
  virtual void map(Config& config, const StandaloneDesc& desc, const std::string& what, double seconds,
                   const Target& target) const = 0;
  virtual ScheduledGroup contraction(ContractionBuilder& builder) const = 0;
  // A group may read or store `value` at `place`, inside the memory of another value. Returns the reason why this would
  // make a contraction group slower; empty if it would not.
  virtual std::string placement_cost(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                                     const ir::Placement& place, const Target& target) const = 0;
  // Joins kernels of contraction groups that do not depend on each other and differ only in their bindings. Returns
  // nullopt if no kernel runs them at once.
  virtual std::optional<ScheduledKernel> side_by_side(const std::vector<ScheduledKernel>& products,
                                                      const Target& target) const = 0;
  virtual const AttentionBackend& attention() const = 0;
  virtual const BackToBackBackend& back_to_back() const = 0;
  // A lower bound for the time of a contraction that reads and writes `bytes` bytes and needs `operations` operations.
  virtual double floor_seconds(const ContractionDesc& desc, double bytes, double operations,
                               const Target& target) const = 0;

  // Joins consecutive kernels of a plan in one launch. No kernels of a CPU are joined.
  virtual SequencePlan plan_sequences(const std::vector<PlannedKernel>& kernels, const Target& target) const = 0;

  // True if a contraction group should read its packed weights itself, as `packed` does. If false, it reads them as
  // floats, and the group is `widened`. Sets `*reason`.
  virtual bool pays_to_read_packed(const ir::Graph& graph, const ir::Group& packed, const ir::Group& widened,
                                   const Target& target, std::string* reason) const = 0;

  // --- Launches ------------------------------------------------------------------------------------------------------

  // Fills in the launches of a kernel plan, if kernels of this kind of target have launches.
  virtual void plan_launches(KernelPlan& plan, const Target& target) const = 0;
};

const Backend& backend_of(const Target& target);

}  // namespace heddle::schedule
