#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/region/cost.h"
#include "schedule/region/cut.h"
#include "schedule/region/exprs/kernel_exprs.h"

namespace heddle::schedule {

// A group of memory-bound nodes while it is being scheduled. RegionScheduler and its backend share this object.
struct Region {
  Region(const ir::Graph& graph, const ir::Group& members, const Target& machine, const StitchOptions& choices);
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  const ir::Graph& outer;
  const ir::Group& group;
  const Target& target;
  const StitchOptions& options;
  LocalGraph local;
  std::set<ir::ValueId> pending;  // roots that no kernel computes yet
  std::set<ir::ValueId> made;
  std::set<ir::ValueId> cut;  // values that one kernel stores for another to load
  // Values that kernels must load instead of computing them: otherwise a kernel would become too large or would compute
  // the values too often. Maps each value to the index of its boundary (cuts_for_size()).
  std::map<ir::ValueId, uint32_t> apart;
  std::vector<std::vector<ir::NodeId>> users;
  Sources sources;

  bool is_input(ir::ValueId v) const;
  bool is_scan(ir::ValueId v) const { return local.graph.producer(v).op == ir::Op::kScan; }
  // True if `other` must wait for one of `roots`, or the reverse: the second step of a split reduction waits for the
  // first. If results do not stay on chip, every reader waits.
  bool reads_forced(ir::ValueId other, const std::vector<ir::ValueId>& roots);
  double bytes_of(ir::ValueId v) const;
  ValueMemory memory_of(ir::ValueId v) const;
};

// The parallel structure of a kernel before its stages are determined. Each backend derives its own type from this.
struct RegionMapping {
  std::vector<GridDim> grid;
  uint64_t fixed = 0;               // set of variables that are constant in one iteration of the grid
  std::optional<VarId> vector;      // the variable along which most accesses have unit stride
  std::optional<VarId> transposed;  // a second blocked variable, along which some loads have unit stride
  std::string reason;
};

// The result of mapping a set of roots to one kernel. Without a mapping, one kernel cannot compute these roots: earlier
// kernels must then compute the values in `cuts`. If there is no mapping and `cuts` is empty, the roots do not belong
// together.
struct MapResult {
  std::shared_ptr<const RegionMapping> mapping;
  std::set<ir::ValueId> cuts;
  bool apart = false;                // readers of `cuts` need a kernel of their own
  std::optional<ir::ValueId> split;  // a reduction to split into `parts`, so that all threads have work
  int64_t parts = 0;
  std::optional<ir::ValueId> fold;  // a reduction of short columns that should read `fold_rows` rows as one
  int64_t fold_rows = 0;
  Work work;
  double seconds = 0;  // predicted, on a GPU
  std::string reason;
};

// Returns, for a reduction, the cheapest values to store in place of its result: the values after the elementwise
// operations on the result and before the broadcast. Empty if the reduction or one of its consumers is a root.
using Frontier = std::function<std::set<ir::ValueId>(ir::ValueId)>;

// Roots that may become one kernel, with their expressions and the result of mapping them.
struct Candidate {
  std::unique_ptr<KernelExprs> exprs;
  MapResult result;
};

// The target-dependent part of scheduling memory-bound kernels.
class RegionBackend {
 public:
  explicit RegionBackend(Region& region);
  virtual ~RegionBackend() = default;

  // Maps `roots` to a kernel. `parts`: the iteration space of a kernel of rows that also reduces their columns.
  Candidate candidate(std::vector<ir::ValueId> roots, const std::optional<RowParts>& parts = {});
  const KernelContext& context() const { return context_; }

  // Rewrites the region before it is cut into kernels.
  virtual void prepare() {}
  // Called after the values of the region have been renumbered. Maps each old value to its replacement.
  virtual void renumbered(const ValueMap& /*now*/) {}
  // A kernel that prepare() planned: it computes `rows`, an output over whole rows or a reduction of rows, and the
  // partial reductions of columns. `rows` is not stored if no other kernel reads it.
  struct Planned {
    ir::ValueId rows;
    std::vector<ir::ValueId> partials;
    RowParts parts;
  };
  virtual const std::vector<Planned>& planned() const;

  virtual size_t most_roots() const = 0;
  // True if it may be worthwhile to compute `other` in the same kernel as `roots`. This is a cheap check before
  // joins().
  virtual bool may_join(const std::vector<ir::ValueId>& roots, ir::ValueId other, const MapResult& now) = 0;
  // True if the kernel `wider`, which also computes `other`, is at least as good as `now` together with a separate
  // kernel for `other`.
  virtual bool joins(const Candidate& now, const Candidate& wider, ir::ValueId other) = 0;
  // A reduction to split into `parts`. The partial reductions then share the reads of a kernel that reads the same
  // data. shares_read() looks for such a reduction among the other roots.
  struct Split {
    ir::ValueId value;
    int64_t parts;
    std::string reason;
  };
  virtual std::optional<Split> shares_read(const Candidate& /*kernel*/) { return std::nullopt; }

  // Sets the description, the configuration and the predicted facts of a kernel.
  virtual void lower(Candidate& from, const std::string& title, ScheduledKernel& kernel) = 0;
  virtual ScheduledGroup finish(ScheduledGroup group) { return group; }

 protected:
  // Maps the expressions to a kernel. `carries`: true if one of the variables that some reductions run over must become
  // a serial loop (GPU only).
  virtual MapResult map(KernelExprs& exprs, const Frontier& frontier, bool carries) = 0;

  Region& region_;
  KernelContext context_;
};

// Cuts a region into kernels. The roots of the kernels are the group's outputs and the values that one kernel stores
// for another.
ScheduledGroup schedule_region(Region& region, RegionBackend& backend);

}  // namespace heddle::schedule
