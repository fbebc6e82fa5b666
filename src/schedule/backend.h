#pragma once

#include <memory>
#include <string>

#include "schedule/attention/attention.h"
#include "schedule/back_to_back/back_to_back.h"
#include "schedule/kernel_plan.h"
#include "schedule/product/contraction_builder.h"
#include "schedule/region/region.h"
#include "schedule/region/standalone.h"

namespace heddle::schedule {

// How a kind of target schedules: all that this folder does otherwise on one than on another. One object a kind,
// without state; each is asked about targets of its own kind.
class Backend {
 public:
  virtual ~Backend() = default;

  // --- What has a kernel ---------------------------------------------------------------------------------------------

  // Why a contraction or window for which there is a template has no kernel all the same; empty: it has.
  virtual std::string contraction_obstacle(const ir::Graph& graph, const ir::Node& node) const = 0;
  // Elements that a selection of the largest can keep.
  virtual int64_t most_selected() const = 0;
  // Whether there are kernels of all steps of a loop (schedule_recurrence()).
  virtual bool has_recurrences() const = 0;
  // Whether contraction groups that are alike by types, shapes and strides are scheduled alike.
  virtual bool contractions_by_shape() const = 0;

  // --- Kernels -------------------------------------------------------------------------------------------------------

  virtual std::unique_ptr<RegionBackend> region(Region& region) const = 0;
  // The kernels of a stitch group, joined beyond what region() joins.
  virtual ScheduledGroup bundled(ScheduledGroup group, const Target& target) const = 0;
  // Blocks, tasks and the reason of a standalone kernel. `what` it does begins the reason; moving its operands takes
  // `seconds`.
  virtual void map(Config& config, const StandaloneDesc& desc, const std::string& what, double seconds,
                   const Target& target) const = 0;
  virtual ScheduledGroup contraction(ContractionBuilder& builder) const = 0;
  // Why a group of contractions would be slower at reading or storing a value at a place in the memory of another;
  // empty: it would not.
  virtual std::string placement_cost(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                                     const ir::Placement& place, const Target& target) const = 0;
  virtual const AttentionBackend& attention() const = 0;
  virtual const BackToBackBackend& back_to_back() const = 0;
  // The least time of a contraction that reads and writes `bytes`.
  virtual double floor_seconds(const ContractionDesc& desc, double bytes, double operations,
                               const Target& target) const = 0;

  // --- Launches ------------------------------------------------------------------------------------------------------

  // Fills in how the kernel is launched, where kernels of this kind are.
  virtual void plan_launches(KernelPlan& plan, const Target& target) const = 0;
};

const Backend& backend_of(const Target& target);

}  // namespace heddle::schedule
