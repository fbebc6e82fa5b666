#include "schedule/region/cpu/backend.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "schedule/floor.h"
#include "schedule/region/cpu/mapping.h"
#include "schedule/region/mapping.h"

namespace heddle::schedule {
namespace {

const Mapping& mapping_of(const Candidate& kernel) {
  return static_cast<const Mapping&>(*kernel.result.mapping);
}

std::string text_of(const CpuStitchDesc& desc, const Mapping& mapping) {
  std::vector<std::string> dims;
  for (const GridDim& d : desc.grid) {
    dims.push_back(d.block > 1 ? fmt::format("{} blocks of {}", desc.blocks_of(d), d.block)
                               : fmt::format("{}", desc.pool.indices.extent(d.var)));
  }
  std::vector<std::string> sweeps;
  for (const Stage& stage : desc.stages) {
    std::vector<std::string> loops;
    for (VarId v : stage.loops) {
      const auto block = std::find_if(desc.grid.begin(), desc.grid.end(), [&](const GridDim& d) { return d.var == v; });
      loops.push_back(fmt::format("{}", block == desc.grid.end() ? desc.pool.indices.extent(v) : block->block));
    }
    sweeps.push_back(loops.empty() ? "1" : fmt::format("{}{}", fmt::join(loops, "x"), stage.vector ? "v" : ""));
  }
  return fmt::format("grid {}, {} tasks, sweeps over {}",
                     dims.empty() ? "1" : fmt::format("{}", fmt::join(dims, " x ")), mapping.tasks,
                     fmt::join(sweeps, ", "));
}

class CpuRegion : public RegionBackend {
 public:
  explicit CpuRegion(Region& region) : RegionBackend(region), cpu_(region.target.cpu) {
    context_.part_dim = [&region](ir::ValueId v) -> std::optional<size_t> {
      const auto at = region.local.part_dim.find(v);
      return at == region.local.part_dim.end() ? std::nullopt : std::optional(at->second);
    };
  }

  size_t most_roots() const override { return 16; }

  bool may_join(const std::vector<ir::ValueId>& roots, ir::ValueId other, const MapResult& /*now*/) override {
    return region_.sources.related(roots, other);
  }

  bool joins(const Candidate& now, const Candidate& wider, ir::ValueId /*other*/) override {
    const int64_t before = iterations_of(now.exprs->pool.indices, mapping_of(now).grid);
    const int64_t after = iterations_of(wider.exprs->pool.indices, mapping_of(wider).grid);
    if (after < std::min<int64_t>(before, cpu_.threads)) return false;
    // What an iteration sweeps over several times is to stay in L2.
    return after >= before || now.result.work.bytes / static_cast<double>(after) <= static_cast<double>(cpu_.l2_bytes);
  }

  // A reduction down the columns of what this kernel reads row by row: in parts of as many rows as L2 holds it joins
  // this kernel, which then reads the data once for both.
  std::optional<Split> shares_read(const Candidate& kernel) override {
    const auto l2 = static_cast<double>(cpu_.l2_bytes);
    const double bytes = kernel.result.work.bytes;
    const StitchOptions& options = region_.options;
    if (!options.dominant_merging || !options.adaptive_mapping || bytes < 2 * l2) return std::nullopt;
    std::vector<ir::ValueId> roots;
    for (const Root& root : kernel.exprs->roots) roots.push_back(root.value);
    const int64_t size = element_count(region_.local.graph.shape(roots[0]));
    for (const ir::ValueId other : region_.pending) {
      if (std::find(roots.begin(), roots.end(), other) != roots.end()) continue;
      if (!region_.sources.related(roots, other)) continue;
      const std::optional<ir::ValueId> reduction = column_reduction(other, size);
      if (!reduction || region_.local.whole.count(*reduction) != 0) continue;
      return Split{*reduction, static_cast<int64_t>(2 * bytes / l2) + 1,
                   fmt::format("its parts share one read of {:.3g} MB with the rows that L2 holds", bytes * 1e-6)};
    }
    return std::nullopt;
  }

  void lower(Candidate& from, const std::string& title, ScheduledKernel& kernel) override {
    const Mapping& mapping = mapping_of(from);
    const Work& work = from.result.work;
    kernel.floor_seconds = std::max(least_seconds(work.bytes, region_.target), arithmetic_seconds(work.cycles, cpu_));
    kernel.config.tasks = mapping.tasks;
    kernel.config.choice = LoopConfig{cpu_.lanes_f32()};
    const Constants constants = [this](ir::ValueId v) -> const Tensor* {
      const auto outer = region_.local.outer.find(v);
      return outer == region_.local.outer.end() ? nullptr : region_.outer.constant_of(outer->second);
    };
    auto desc = build_stages(*from.exprs, region_.local.graph, mapping, region_.target, region_.options, constants);
    desc->title = title;
    StitchFacts& facts = kernel.stitch;
    facts.schemes = desc->schemes;
    for (const Scratch& s : desc->scratch) facts.on_chip_bytes += s.elements * static_cast<int64_t>(size_of(s.dtype));
    const auto workers = static_cast<double>(std::clamp<int64_t>(mapping.tasks, 1, cpu_.threads));
    facts.predicted_seconds = work.seconds(cpu_) / workers + (workers > 1 ? cpu_.barrier_us * 1e-6 : 0);
    facts.mapping = text_of(*desc, mapping);
    kernel.desc.body = std::shared_ptr<const CpuStitchDesc>(std::move(desc));
  }

 protected:
  MapResult map(KernelExprs& exprs, const Frontier& frontier, bool /*carries*/) override {
    return map_kernel(exprs, region_.local.graph, region_.target, region_.options, frontier);
  }

 private:
  // The reduction of `size` elements, over dimensions before its last one, from which elementwise nodes make a root.
  std::optional<ir::ValueId> column_reduction(ir::ValueId root, int64_t size) const {
    const ir::Graph& graph = region_.local.graph;
    for (ir::ValueId v = root; !region_.is_input(v);) {
      const ir::Node& node = graph.producer(v);
      if (node.op == ir::Op::kReduce) {
        const Shape& from = graph.shape(node.inputs[0]);
        const auto& dims = node.attrs.ints("dims");
        const bool columns = !dims.empty() && dims.back() + 1 < static_cast<int64_t>(from.size());
        return columns && element_count(from) == size ? std::optional(v) : std::nullopt;
      }
      if (!ir::is_elementwise(node.op) && node.op != ir::Op::kReshape) return std::nullopt;
      const auto larger = std::max_element(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId a, ir::ValueId b) {
        return graph.producer(a).op == ir::Op::kBroadcast && graph.producer(b).op != ir::Op::kBroadcast;
      });
      v = *larger;
    }
    return std::nullopt;
  }

  const CpuTarget& cpu_;
};

}  // namespace

std::unique_ptr<RegionBackend> cpu_region(Region& region) {
  return std::make_unique<CpuRegion>(region);
}

}  // namespace heddle::schedule
