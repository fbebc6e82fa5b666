#include "schedule/region/cuda/stages/layouts.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/region/cuda/serial_rows.h"
#include "schedule/region/cuda/vector_length.h"
#include "schedule/region/mapping.h"

namespace heddle::schedule {
namespace {

using Over = CudaReduction::Over;

// The loop along which most of a sweep's accesses lie side by side.
std::optional<VarId> lane_of(const CudaDrafts& k, const CudaDraft& d) {
  if (k.mapping.vector && (d.loops & bit(*k.mapping.vector))) return k.mapping.vector;
  const std::map<VarId, int> votes = k.unit_stride_votes(d.roots(), d.stores, d.loops);
  std::optional<VarId> best;
  for (const auto& [v, n] : votes) {
    if (!best || n >= votes.at(*best)) best = v;
  }
  if (!best && d.loops != 0) best = static_cast<VarId>(std::bit_width(d.loops) - 1);
  return best;
}

// Sweeps over the same points agree on the elements of a vector.
int vector_shared(const CudaDrafts& k, const CudaDraft& d, VarId lane) {
  int vector = std::min(8, vector_for(k, d, lane));
  for (const CudaDraft& o : k.drafts) {
    if (o.loops == d.loops) vector = std::min(vector, vector_for(k, o, lane));
  }
  return vector;
}

// How many threads had better share a row.
int group_for(int64_t rows, int64_t columns, int active, const CudaShape& shape) {
  int best = 1;
  double least = 0;
  for (int group = std::min(shape.team, shape.lanes); group >= 1; group /= 2) {
    const auto turns = static_cast<double>(ceil_div(rows, active / group));
    const double cost = turns * (static_cast<double>(ceil_div(columns, group)) + 0.3 * std::bit_width(unsigned(group)));
    if (least == 0 || cost < 0.9 * least) {
      least = cost;
      best = group;
    }
  }
  return best;
}

void layout_reduction(CudaDrafts& k, CudaDraft& d) {
  const VarId lane = *lane_of(k, d);
  ThreadLayout& s = d.layout;
  s.vector = vector_shared(k, d, lane);
  s.by_columns = (d.kept & bit(lane)) != 0;
  const uint64_t lead = s.by_columns ? d.loops & ~d.kept : d.kept;
  s.loops = k.ordered(lead, std::nullopt);
  s.outer_loops = s.loops.size();
  for (VarId v : k.ordered(d.loops & ~lead, lane)) s.loops.push_back(v);
  s.active = k.mapping.team;
  d.placed = true;
  const int64_t columns = k.desc->columns(s);
  if (!s.by_columns) {
    s.group = group_for(k.desc->rows(s), columns, s.active, k.mapping);
    return;
  }
  if (columns <= s.active) s.active = static_cast<int>(s.active / columns * columns);
  for (CudaReduction& r : d.reductions) {
    if (r.over == Over::kGroup) r.over = Over::kColumn;
  }
}

// Whether each warp of a block had better reduce all points by itself than wait for the others.
bool is_small(const CudaDrafts& k, const CudaDraft& d) {
  constexpr int64_t kSteps = 2;
  if (k.mapping.cta_group > 1 || k.mapping.serial || k.mapping.team <= k.mapping.lanes || d.scan ||
      d.reductions.empty())
    return false;
  const bool stored = std::any_of(k.drafts.begin(), k.drafts.end(),
                                  [&](const CudaDraft& o) { return o.loops == d.loops && !o.stores.empty(); });
  const std::optional<VarId> lane = lane_of(k, d);
  if (stored || !lane) return false;
  return k.loop_volume(d.loops) <= kSteps * k.mapping.lanes * vector_shared(k, d, *lane);
}

bool reduces_over(const CudaDraft& d, bool (*where)(Over)) {
  return std::any_of(d.reductions.begin(), d.reductions.end(), [&](const CudaReduction& r) { return where(r.over); });
}

// What is stored when the serial loop has ended lies as what was carried through it.
void layout_after(CudaDrafts& k, CudaDraft& d) {
  const auto carries = std::find_if(k.drafts.begin(), k.drafts.end(), [](const CudaDraft& o) {
    return reduces_over(o, [](Over over) { return over == Over::kCarried; });
  });
  HEDDLE_CHECK(carries != k.drafts.end());
  if (carries->loops != d.loops || carries->layout.outer_loops != 0) {
    fail(ErrorCode::kUnsupportedOperator, "stitch group", "what is carried lies otherwise than what is stored");
  }
  d.layout = carries->layout;
  d.layout.group = d.layout.active = k.mapping.threads;
  d.placed = true;
}

}  // namespace

int vector_for(const CudaDrafts& k, const CudaDraft& d, VarId lane) {
  if (d.scan) return 1;
  const int64_t block = k.loop_extent(lane);
  const bool of_thread = k.mapping.team == 1 && k.blocked(lane) != nullptr;
  // A thread that keeps the result of a column in a register has one vector of columns.
  if (of_thread && !k.exprs.sites.empty()) return static_cast<int>(block);
  // The end of a vector that is alone in its kernel may be cut: its elements are then done one by one.
  const int64_t extent = of_thread ? block : std::gcd(block, k.pool.indices.extent(lane));
  const uint64_t streams = streams_of_rows(k.mapping, block);
  return vector_length(k.pool, k.mapping.grid, {lane, extent, streams}, d.values(), d.stores, k.first_scratch);
}

void layout_points(const CudaDrafts& k, CudaDraft& d, int team) {
  // A scan's steps come in the order of its dimension, whatever lies side by side.
  const std::optional<VarId> lane = d.scan ? std::nullopt : lane_of(k, d);
  d.layout.loops = k.ordered(d.loops, lane);
  d.layout.group = d.layout.active = team;
  if (lane) d.layout.vector = vector_shared(k, d, *lane);
  d.placed = true;
}

void choose_layouts(CudaDrafts& k) {
  for (CudaDraft& d : k.drafts) {
    if (reduces_over(d, [](Over over) { return over != Over::kCarried && over != Over::kTeam; }))
      layout_reduction(k, d);
  }
  for (CudaDraft& d : k.drafts) {
    if (d.placed) continue;
    const auto like = std::find_if(k.drafts.begin(), k.drafts.end(),
                                   [&](const CudaDraft& o) { return o.placed && o.loops == d.loops && !o.scan; });
    if (like == k.drafts.end() && is_small(k, d)) {
      layout_points(k, d, k.mapping.lanes);
      d.layout.replicated = true;
    } else if (like != k.drafts.end() && !d.scan) {
      // Sweeps over the same points are laid out alike, so that threads may keep what they have.
      d.layout = like->layout;
      d.placed = true;
    } else {
      layout_points(k, d, k.mapping.team);
    }
  }
  for (CudaDraft& d : k.after) layout_after(k, d);
}

}  // namespace heddle::schedule
