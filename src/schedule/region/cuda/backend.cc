#include "schedule/region/cuda/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/floor.h"
#include "schedule/region/cuda/launch/bundle.h"
#include "schedule/region/cuda/mapping.h"
#include "schedule/region/cuda/rewrites/column_riders.h"
#include "schedule/region/cuda/rewrites/statistics.h"

namespace heddle::schedule {
namespace {

const CudaMapping& mapping_of(const MapResult& result) {
  return static_cast<const CudaMapping&>(*result.mapping);
}

class CudaRegion : public RegionBackend {
 public:
  explicit CudaRegion(Region& region) : RegionBackend(region), cuda_(region.target.gpu()), riders_(region, context_) {
    context_.parts_apart = true;
    context_.scatters_rows = true;
    context_.moves_rows = true;
  }

  void prepare() override {
    if (region_.options.adaptive_mapping) split_statistics(region_.local, cuda_);
    if (region_.options.adaptive_mapping && region_.options.dominant_merging) riders_.find();
  }
  void renumbered(const ValueMap& now) override { riders_.renumber(now); }

  const std::vector<Planned>& planned() const override { return riders_.passes(); }

  // Each root is a pointer and an address computation.
  size_t most_roots() const override { return 48; }

  // Roots that read a common value share its reading; others of the same shape may share the launch, unless they go
  // beside each other (bundle.h) instead of one after the other on the same threads.
  bool may_join(const std::vector<ir::ValueId>& roots, ir::ValueId other, const MapResult& now) override {
    const ir::Graph& graph = region_.local.graph;
    return (mapping_of(now).team > 1 && graph.shape(roots[0]) == graph.shape(other)) ||
           region_.sources.related(roots, other);
  }

  bool joins(const Candidate& now, const Candidate& wider, ir::ValueId other) override {
    const MapResult alone = candidate({other}).result;
    // What needs a value of this kernel would have to wait for it.
    const double apart = alone.mapping != nullptr ? alone.seconds : now.result.seconds;
    return wider.result.seconds <= now.result.seconds + apart;
  }

  void lower(Candidate& from, const std::string& title, ScheduledKernel& kernel) override {
    const CudaMapping& mapping = mapping_of(from.result);
    const double bytes = from.result.work.bytes;
    kernel.floor_seconds = least_seconds(bytes, region_.target);
    kernel.config.tasks = mapping.blocks;
    auto desc = build_cuda_stages(*from.exprs, region_.local.graph, mapping, region_.target);
    desc->title = title;
    StitchFacts& facts = kernel.stitch;
    facts.mapping = mapping.reason;
    facts.schemes = desc->schemes;
    for (const Scratch& s : desc->scratch) {
      facts.on_chip_bytes += s.elements * static_cast<int64_t>(size_of(s.dtype)) * desc->teams();
    }
    facts.predicted_seconds = from.result.seconds;
    // Where a kernel writes more than the L2 holds, forgetting what it reads saves nothing.
    if (bytes > 1.5 * static_cast<double>(cuda_.l2_bytes)) desc->evict_first.clear();
    kernel.desc.body = std::shared_ptr<const CudaStitchDesc>(std::move(desc));
  }

  ScheduledGroup finish(ScheduledGroup group) override {
    for (const ScheduledKernel& kernel : group.kernels) {
      for (const SchemeChoice& choice : kernel.stitch.schemes) {
        group.notes.push_back(fmt::format("{}{}: {}, {}", choice.dominant ? "" : "sub-dominant ", choice.value,
                                          to_string(choice.scheme), choice.reason));
      }
    }
    group.notes.insert(group.notes.end(), riders_.refusals().begin(), riders_.refusals().end());
    keep_wanted(group);
    const StitchOptions& options = region_.options;
    return options.dominant_merging ? bundle_cuda_kernels(std::move(group), cuda_, !options.global) : std::move(group);
  }

 protected:
  // Without adaptive mapping every iteration that reduces is a block's.
  MapResult map(KernelExprs& exprs, const Frontier& frontier, bool carries) override {
    const StitchOptions& options = region_.options;
    const bool model = options.mapping == ForcedMapping::kNone;
    MapResult result = map_cuda(exprs, region_.local.graph, region_.target, frontier, carries,
                                model && !options.adaptive_mapping ? ForcedMapping::kBlock : options.mapping);
    if (carries && result.mapping != nullptr && !mapping_of(result).serial) result.mapping.reset();
    return result;
  }

 private:
  // The L2 may forget only what the model is given and one kernel alone reads.
  void keep_wanted(ScheduledGroup& group) const {
    std::map<ir::ValueId, uint32_t> own_uses;
    for (ir::NodeId id : region_.group.nodes) {
      for (ir::ValueId v : region_.outer.node(id).inputs) ++own_uses[v];
    }
    std::map<ir::ValueId, int> readers;
    for (const ScheduledKernel& kernel : group.kernels) {
      for (const Binding& b : kernel.bindings) readers[b.value] += b.kind == Binding::Kind::kValue;
    }
    for (ScheduledKernel& kernel : group.kernels) {
      const auto body = kernel.desc.get<CudaStitchDesc>();
      if (body == nullptr) continue;
      std::set<uint32_t> once = body->evict_first;
      std::erase_if(once, [&](uint32_t operand) {
        const Binding& b = kernel.bindings[operand];
        return b.kind != Binding::Kind::kValue || region_.outer.producer(b.value).op != ir::Op::kParameter ||
               readers[b.value] > 1 || own_uses[b.value] != region_.outer.value(b.value).uses;
      });
      if (once == body->evict_first) continue;
      auto changed = std::make_shared<CudaStitchDesc>(*body);
      changed->evict_first = std::move(once);
      kernel.desc.body = std::shared_ptr<const CudaStitchDesc>(std::move(changed));
    }
  }

  const GpuTarget& cuda_;
  ColumnRiders riders_;
};

}  // namespace

std::unique_ptr<RegionBackend> cuda_region(Region& region) {
  return std::make_unique<CudaRegion>(region);
}

}  // namespace heddle::schedule
