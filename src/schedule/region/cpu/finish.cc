#include "schedule/region/cpu/finish.h"

#include <algorithm>

#include "base/divide.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/region/cpu/pieces.h"
#include "schedule/region/mapping.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kLanes = 16;  // at most: transpositions write whole vectors

// Several long rows at once spare most of the traffic to the running results. Short ones are better read in order:
// interleaved they are no stream that the processor recognises.
int64_t rows_together(const CpuDrafts& k, const Stage& stage, const Piece& whole) {
  constexpr int64_t kRows = 4, kPageBytes = 4096;
  if (!stage.vertical || stage.held || stage.scan || stage.loops.size() < stage.kept + 2) return 1;
  const bool args = std::any_of(stage.reductions.begin(), stage.reductions.end(),
                                [](const Reduction& r) { return is_arg(r.combine); });
  const VarId lanes = stage.loops.back(), row = stage.loops[stage.loops.size() - 2];
  if (args || k.pool.indices.extent(row) < kRows || k.loop_extent(lanes) * 4 < kPageBytes) return 1;
  return varying_cycles(k.pool, whole.values, lanes) <= k.cpu.model.light_step_cycles ? kRows : 1;
}

// Short rows of several iterations of the vector loop are brought into scratch by the first stage that needs them,
// and go from scratch to their buffer after the stage that makes them.
void transpose_packed(CpuDrafts& k, CpuDraft& d, Stage& stage) {
  const VarId u = *k.mapping.vector, v = *k.mapping.transposed;
  const GridDim* block = k.blocked(u);
  const uint64_t both = bit(u) | bit(v);
  k.replace(d, k.packed);
  if (block == nullptr || (d.loops & both) != both) return;
  IndexPool& indices = k.pool.indices;
  const int64_t width = round_up(block->block, kLanes), length = indices.extent(v);
  Index in_scratch = indices.add(indices.scale(indices.var(v), width), indices.var(u));
  in_scratch = indices.add(in_scratch, indices.scale(indices.var(block->start), -1));
  const auto first_of = [&](const Index& index) {
    return indices.substitute(index, {{u, indices.var(block->start)}, {v, Index{}}}, [](ExprId same) { return same; });
  };
  const auto stride_of = [&](const Index& index) -> int64_t {
    const auto stride = stride_along(k.pool, index, u);
    const bool crosses = stride_along(k.pool, index, v) == 1 && stride && *stride > 1;
    return crosses && (k.inner(k.pool.vars(index)) & ~both) == 0 ? *stride : 0;
  };
  std::map<ExprId, ExprId> with;
  for (ExprId e : unconditional(k.pool, d.roots())) {
    const Expr load = k.pool[e];
    if (load.kind != Expr::Kind::kLoad || load.id >= k.first_scratch || is_narrow_float(load.dtype)) continue;
    const int64_t stride = stride_of(load.index);
    if (stride == 0) continue;
    const uint32_t buffer = k.new_scratch(load.dtype, length * width);
    stage.transposed.push_back({load.id, load.dtype, first_of(load.index), stride, v, buffer});
    with[e] = k.pool.load(compute_dtype(load.dtype), buffer, in_scratch);
  }
  k.packed.insert(with.begin(), with.end());
  k.replace(d, with);
  for (Store& s : d.stores) {
    if (s.buffer >= k.first_scratch || is_narrow_float(s.dtype)) continue;
    const int64_t stride = stride_of(s.at);
    if (stride == 0 || (k.inner(k.pool.vars(s.value)) & ~both) != 0) continue;
    const uint32_t buffer = k.new_scratch(s.dtype, length * width);
    stage.transposed_stores.push_back({s.buffer, s.dtype, first_of(s.at), stride, v, buffer, s.stream});
    // What a later stage reads back from the output lies in scratch as well, unless rounding changed it.
    if (compute_dtype(s.dtype) == s.dtype) {
      k.packed[k.pool.load(s.dtype, s.buffer, s.at)] = k.pool.load(s.dtype, buffer, in_scratch);
    }
    s = {buffer, k.scratch.back().dtype, in_scratch, s.value, false};
  }
}

void transpose_stage_loads(CpuDrafts& k, CpuDraft& d, Stage& stage) {
  if (!k.mapping.transposed || !d.reductions.empty()) return;
  const GridDim *rows = k.blocked(*k.mapping.transposed), *columns = k.blocked(*k.mapping.vector);
  if (rows == nullptr || columns == nullptr || d.loops != (bit(rows->var) | bit(columns->var))) return;
  const RegionDrafts::Tile tile{*rows, *columns, round_up(rows->block, kLanes), round_up(columns->block, kLanes)};
  std::map<ExprId, ExprId> with;
  stage.transposed = k.through_tiles(
      d.roots(), tile, [](DType stored) { return !is_narrow_float(stored); }, with);
  k.replace(d, with);
}

Stage finish(CpuDrafts& k, CpuDraft& d) {
  constexpr int64_t kHeldVolume = 64;  // reduced elements up to which a column is walked at once, in registers
  constexpr int64_t kHeldStreams = 8;  // the same where the rows lie far apart
  Stage stage;
  std::optional<VarId> vector = k.vector_of(d);
  stage.scan = d.scan;
  if (d.scan) vector = k.mapping.vector && (d.kept >> *k.mapping.vector & 1) ? k.mapping.vector : std::nullopt;
  stage.vector = vector.has_value();
  stage.vertical = vector && (d.kept >> *vector & 1) && !d.reductions.empty();
  const uint64_t last = vector ? bit(*vector) : 0;
  stage.loops = k.ordered(d.kept & ~last, std::nullopt);
  stage.kept = stage.loops.size();
  for (VarId v : k.ordered(d.loops & ~d.kept & ~last, std::nullopt)) stage.loops.push_back(v);
  if (vector) stage.loops.push_back(*vector);
  if (d.reductions.empty()) stage.kept = stage.loops.size();
  stage.reductions = d.reductions;
  stage.packed = k.mapping.packed;
  // What a block of packed rows computes with one value per row is computed once, outside the loop along the row.
  const bool packed = k.mapping.packed && d.reductions.empty() && vector == k.mapping.vector;
  if (packed) stage.kept = 0;
  const int64_t reduced = k.loop_volume(d.loops & ~d.kept);
  const bool near = reduced <= kHeldVolume && k.loop_volume(d.loops) * 4 <= k.cpu.l2_bytes / 2;
  stage.held = packed || (stage.vertical && !d.scan && (k.mapping.packed || near || reduced <= kHeldStreams));
  if (k.mapping.packed) {
    transpose_packed(k, d, stage);
  } else {
    transpose_stage_loads(k, d, stage);
  }
  Piece whole;
  for (VarId v : stage.loops) whole.ranges.push_back({0, k.pool.indices.extent(v) - 1});
  whole.values = d.values;
  whole.positions = d.positions;
  whole.stores = d.stores;
  stage.together = rows_together(k, stage, whole);
  stage.pieces = cut_pieces(k.pool, stage, std::move(whole));
  return stage;
}

}  // namespace

void lay_out_loops(CpuDrafts& k) {
  for (CpuDraft& d : k.drafts) k.desc->stages.push_back(finish(k, d));
}

void prefetch_next(CpuDrafts& k) {
  std::vector<Stage>& stages = k.desc->stages;
  if (stages.size() < 2 || k.mapping.packed || k.mapping.grid.empty() || !stages[0].vector) return;
  const GridDim& fastest = k.mapping.grid.back();
  const VarId step = fastest.block > 1 ? fastest.start : fastest.var;
  Stage& first = stages[0];
  const VarId lanes = first.loops.back();
  std::set<ExprId> seen;
  for (ExprId root : first.pieces[0].values) {
    visit_exprs(k.pool, {root}, [&](ExprId e) {
      const Expr& load = k.pool[e];
      if (load.kind != Expr::Kind::kLoad || load.id >= k.exprs.inputs.size() || !seen.insert(e).second) return;
      const InputOperand& input = k.exprs.inputs[load.id];
      const auto size = static_cast<int64_t>(size_of(input.dtype));
      const auto stride = stride_along(k.pool, load.index, step);
      if (stride_along(k.pool, load.index, lanes) != 1 || !stride || *stride <= 0) return;
      const int64_t bytes = k.loop_volume(k.inner(k.pool.vars(load.index))) * size;
      if (element_count(input.shape) * size <= k.cpu.l2_bytes || bytes > k.cpu.l2_bytes / 4) return;
      const int64_t distance = *stride * fastest.block;
      first.prefetches.push_back({load.id, k.pool.indices.offset(load.index, distance), bytes <= k.cpu.l1_bytes / 4});
    });
  }
}

}  // namespace heddle::schedule
