#include "schedule/region/drafts.h"

#include "schedule/region/mapping.h"

namespace heddle::schedule {

namespace {

// Bits of the blocked variables that hold the start of a block.
uint64_t start_vars(const std::vector<GridDim>& grid) {
  uint64_t set = 0;
  for (const GridDim& d : grid) {
    if (d.block > 1) set |= bit(d.start);
  }
  return set;
}

}  // namespace

RegionDrafts::RegionDrafts(KernelExprs& kernel, const ir::Graph& region, const RegionMapping& mapped, RegionDesc& begun)
    : exprs(kernel),
      graph(region),
      structure(mapped),
      pool(begun.pool),
      scratch(begun.scratch),
      schemes(begun.schemes),
      first_scratch(static_cast<uint32_t>(kernel.inputs.size() + kernel.roots.size())),
      starts_(start_vars(mapped.grid)) {
  begun.pool = std::move(kernel.pool);
  begun.grid = mapped.grid;
}

int64_t RegionDrafts::loop_extent(VarId v) const {
  const GridDim* d = blocked(v);
  return d != nullptr ? d->block : pool.indices.extent(v);
}

int64_t RegionDrafts::loop_volume(uint64_t loops) const {
  int64_t n = 1;
  for (VarId v : ordered(loops, std::nullopt)) n *= loop_extent(v);
  return n;
}

int64_t RegionDrafts::volume(uint64_t vars) const {
  int64_t n = 1;
  for (VarId v : ordered(vars, std::nullopt)) n *= pool.indices.extent(v);
  return n;
}

std::vector<VarId> RegionDrafts::ordered(uint64_t loops, std::optional<VarId> last) const {
  std::vector<VarId> r;
  for (VarId v = 0; v < 64; ++v) {
    if ((loops >> v & 1) && v != last) r.push_back(v);
  }
  if (last && (loops >> *last & 1)) r.push_back(*last);
  return r;
}

Index RegionDrafts::scratch_position(uint64_t loops) {
  Index at;
  int64_t stride = 1;
  const std::vector<VarId> vars = ordered(loops, structure.vector);
  for (size_t i = vars.size(); i-- > 0;) {
    Index v = pool.indices.var(vars[i]);
    if (const GridDim* d = blocked(vars[i])) {
      v = pool.indices.add(v, pool.indices.scale(pool.indices.var(d->start), -1));
    }
    at = pool.indices.add(at, pool.indices.scale(v, stride));
    stride *= loop_extent(vars[i]);
  }
  return at;
}

uint32_t RegionDrafts::new_scratch(DType dtype, int64_t elements) {
  scratch.push_back({compute_dtype(dtype), elements});
  return first_scratch + static_cast<uint32_t>(scratch.size()) - 1;
}

std::vector<TransposedLoad> RegionDrafts::through_tiles(const std::vector<ExprId>& roots, const Tile& tile,
                                                        const std::function<bool(DType stored)>& accepts,
                                                        std::map<ExprId, ExprId>& with) {
  const VarId u = tile.rows.var, v = tile.columns.var;
  const auto offset = [&](const GridDim& d) {
    return pool.indices.add(pool.indices.var(d.var), pool.indices.scale(pool.indices.var(d.start), -1));
  };
  std::vector<TransposedLoad> loads;
  for (ExprId e : unconditional(pool, roots)) {
    const Expr load = pool[e];
    if (load.kind != Expr::Kind::kLoad || stride_along(pool, load.index, u) != 1) continue;
    const auto stride = stride_along(pool, load.index, v);
    if (!stride || *stride <= 1 || !accepts(load.dtype)) continue;
    const uint32_t buffer = new_scratch(load.dtype, tile.height * tile.width);
    const Index at = pool.indices.substitute(
        load.index, {{u, pool.indices.var(tile.rows.start)}, {v, pool.indices.var(tile.columns.start)}},
        [](ExprId same) { return same; });
    loads.push_back({load.id, load.dtype, at, *stride, u, buffer});
    const Index in_tile = pool.indices.add(pool.indices.scale(offset(tile.rows), tile.width), offset(tile.columns));
    with[e] = pool.load(compute_dtype(load.dtype), buffer, in_tile);
  }
  return loads;
}

std::string RegionDrafts::name_of(const ReductionSite& i) const {
  std::string text = std::string(to_string(combine_of(*i.node)));
  if (!i.node->origins.empty()) text += " of " + graph.origin(i.node->origins[0]).op_type;
  return text;
}

std::string RegionDrafts::text_of(ExprId e) const {
  const std::string* text = pool.description(e);
  return text != nullptr ? *text : "a load";
}

std::map<VarId, int> RegionDrafts::unit_stride_votes(const std::vector<ExprId>& values,
                                                     const std::vector<Store>& stores, uint64_t loops) const {
  std::map<VarId, int> votes;
  const auto vote = [&](const Index& index, int weight) {
    for (VarId v : ordered(loops, std::nullopt)) {
      if (loop_extent(v) > 1 && stride_along(pool, index, v) == 1) votes[v] += weight;
    }
  };
  visit_exprs(pool, values, [&](ExprId e) {
    if (pool[e].kind == Expr::Kind::kLoad) vote(pool[e].index, 2);
  });
  for (const Store& s : stores) vote(s.at, 3);
  return votes;
}

}  // namespace heddle::schedule
