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

// A group of memory-bound nodes while it is scheduled. RegionScheduler and its backend share it.
struct Region {
  Region(const ir::Graph& graph, const ir::Group& members, const Target& machine, const StitchOptions& choices);
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  const ir::Graph& outer;
  const ir::Group& group;
  const Target& target;
  const StitchOptions& options;
  LocalGraph local;
  std::set<ir::ValueId> pending;  // roots that no kernel makes yet
  std::set<ir::ValueId> made;
  std::set<ir::ValueId> cut;  // values that one kernel hands to another
  // Those that their readers never make themselves, since one kernel would be too large or compute them too often; with
  // the number of the boundary that they lie on.
  std::map<ir::ValueId, uint32_t> apart;
  std::vector<std::vector<ir::NodeId>> users;
  Sources sources;

  bool is_input(ir::ValueId v) const;
  bool is_scan(ir::ValueId v) const { return local.graph.producer(v).op == ir::Op::kScan; }
  double bytes_of(ir::ValueId v) const;
  ValueMemory memory_of(ir::ValueId v) const;
};

// The parallel structure of a kernel before its stages are laid out. Each backend derives its own.
struct RegionMapping {
  std::vector<GridDim> grid;
  uint64_t fixed = 0;               // variables that one iteration of the grid fixes
  std::optional<VarId> vector;      // the variable that most accesses walk with unit stride
  std::optional<VarId> transposed;  // a second blocked variable, along which some loads have unit stride
  std::string reason;
};

// The outcome for a set of roots. Without a mapping they cannot be one kernel: earlier kernels must make the values in
// `cuts`; if `cuts` is empty, the roots do not belong together.
struct MapResult {
  std::shared_ptr<const RegionMapping> mapping;
  std::set<ir::ValueId> cuts;
  std::optional<ir::ValueId> split;  // a reduction to split into `parts` parts, so that all threads have work
  int64_t parts = 0;
  std::optional<ir::ValueId> fold;  // a reduction down short columns that should read `fold_rows` rows as one
  int64_t fold_rows = 0;
  Work work;
  double seconds = 0;  // predicted, on a GPU
  std::string reason;
};

// For a reduction, the cheapest values in which to hand on its result: after the elementwise operations on it, before
// it is broadcast. Empty if it or one of its consumers is a root.
using Frontier = std::function<std::set<ir::ValueId>(ir::ValueId)>;

// Roots that may become one kernel.
struct Candidate {
  std::unique_ptr<KernelExprs> exprs;
  MapResult result;
};

// The part of scheduling memory-bound kernels that depends on the kind of target.
class RegionBackend {
 public:
  explicit RegionBackend(Region& region);
  virtual ~RegionBackend() = default;

  // `extents`: the extents of the root space, if they must be split in a way that the largest root alone does not
  // require.
  Candidate candidate(std::vector<ir::ValueId> roots, std::vector<int64_t> extents = {});
  const KernelContext& context() const { return context_; }

  // Rewrites the region before anything is cut.
  virtual void prepare() {}
  // Called after the values of the region were renumbered.
  virtual void renumbered() {}
  // The pending roots of a kernel that prepare() planned. planned() returns each kernel once.
  struct Planned {
    std::vector<ir::ValueId> roots;
    std::vector<int64_t> extents;
  };
  virtual std::optional<Planned> planned() { return std::nullopt; }

  virtual size_t most_roots() const = 0;
  // True if it may pay to make `other` in the same kernel as `roots`.
  virtual bool may_join(const std::vector<ir::ValueId>& roots, ir::ValueId other, const MapResult& now) = 0;
  // True if it pays.
  virtual bool joins(const Candidate& now, const Candidate& wider, ir::ValueId other) = 0;
  // A reduction of another root. Its parts would share this kernel's reads.
  struct Split {
    ir::ValueId value;
    int64_t parts;
    std::string reason;
  };
  virtual std::optional<Split> shares_read(const Candidate& /*kernel*/) { return std::nullopt; }

  // Fills in the description, the configuration and the predicted facts of a kernel.
  virtual void lower(Candidate& from, const std::string& title, ScheduledKernel& kernel) = 0;
  virtual ScheduledGroup finish(ScheduledGroup group) { return group; }

 protected:
  // `carries`: a variable that some reductions reduce must become a serial loop.
  virtual MapResult map(KernelExprs& exprs, const Frontier& frontier, bool carries) = 0;

  Region& region_;
  KernelContext context_;
};

// Cuts a region into kernels: roots are the group's outputs and the values that one kernel hands to another.
ScheduledGroup schedule_region(Region& region, RegionBackend& backend);

}  // namespace heddle::schedule
