#include "schedule/region/cuda/serial_rows.h"

#include <algorithm>
#include <bit>

#include "base/divide.h"

namespace heddle::schedule {
namespace {

// The threads of a warp that a row needs, if the teams of a warp then have equally many of `rows` rows.
int64_t team_of_short_row(int64_t steps, int64_t rows) {
  int64_t team = std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(steps))), 32);
  while (team < 32 && rows % (32 / team) != 0) team *= 2;
  return team;
}

// Registers of a thread for a row, without what it loads ahead, and for that. A thread has `elements` elements of it.
struct RowWords {
  int64_t kept = kSerialReserve, stored = 0;
};
RowWords row_words(const KernelExprs& exprs, const CudaMapping& mapping, int64_t elements) {
  RowWords words;
  for (const ReductionSite& i : exprs.sites) words.kept += is_carried(mapping, i) ? elements : 0;
  visit_exprs(exprs.pool, exprs.values(), [&](ExprId e) {
    const Expr& expr = exprs.pool[e];
    if (expr.kind != Expr::Kind::kLoad || !(exprs.pool.vars(e) & bit(*mapping.serial))) return;
    if ((exprs.pool.vars(e) & ~mapping.fixed) == 0) return;
    words.kept += elements;
    words.stored += ceil_div(elements * static_cast<int64_t>(size_of(expr.dtype)), 4);
  });
  return words;
}

constexpr int64_t kRegisters = 65536, kInFlight = 32 << 10;  // of an SM; bytes
constexpr int kMostTurns = 4;

}  // namespace

bool is_carried(const CudaMapping& mapping, const ReductionSite& site) {
  return mapping.serial && (site.reduced & bit(*mapping.serial)) != 0;
}

SerialRows rows_of_warps(const KernelExprs& exprs, const CudaMapping& mapping, int64_t steps, int64_t vector,
                         int64_t rows) {
  constexpr int64_t kMostWarps = 16;
  const RowWords words = row_words(exprs, mapping, ceil_div(steps, 32) * vector);
  SerialRows best;
  best.team = team_of_short_row(steps, rows);
  const int64_t of_warp = 32 / best.team, most = std::clamp<int64_t>(rows / of_warp / 2 * 2, 2, kMostWarps);
  int64_t in_flight = 0;
  for (int turns = 1; turns <= kMostTurns && in_flight < kInFlight; turns *= 2) {
    const int64_t of_thread = words.kept + words.stored * turns;
    const int64_t warps =
        std::clamp<int64_t>(kRegisters / (32 * of_thread * mapping.min_blocks_per_sm) / 2 * 2, 2, most);
    const int64_t bytes = mapping.min_blocks_per_sm * warps * turns * 32 * words.stored * 4;
    if (turns > 1 && (bytes <= in_flight || rows < 2 * turns * warps * of_warp)) break;
    best.warps = warps;
    best.turns = turns;
    in_flight = bytes;
  }
  return best;
}

SerialRows rows_of_columns(const KernelExprs& exprs, const CudaMapping& mapping, int64_t steps, int64_t vector,
                           int64_t rows) {
  constexpr int64_t kMostThreads = 512;
  SerialRows found;
  const int64_t each = ceil_div(steps, kMostThreads);
  found.team = round_up(ceil_div(steps, each), 32);
  found.warps = found.team / 32;
  const RowWords words = row_words(exprs, mapping, each * vector);
  const int64_t registers = kRegisters / (found.team * mapping.min_blocks_per_sm);
  while (found.turns < kMostTurns && rows >= 4 * found.turns && words.kept + 2 * found.turns * words.stored <= registers &&
         mapping.min_blocks_per_sm * found.team * found.turns * words.stored * 4 < kInFlight) {
    found.turns *= 2;
  }
  return found;
}

}  // namespace heddle::schedule
