#include "schedule/region/cuda/serial_rows.h"

#include <algorithm>
#include <bit>

#include "base/divide.h"

namespace heddle::schedule {
namespace {

// The threads of a warp that a row gets: those that it needs, doubled until the teams of a warp have equally many of
// the `rows` rows.
int64_t team_of_short_row(int64_t steps, int64_t rows, int64_t lanes) {
  int64_t team = std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(steps))), lanes);
  while (team < lanes && rows % (lanes / team) != 0) team *= 2;
  return team;
}

// The registers of a thread: for the values that it keeps, and for those that it loads ahead.
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

constexpr int64_t kRegisters = 65536, kInFlight = 40 << 10;  // of an SM; bytes
constexpr int64_t kMostThreads = 512, kMostColumns = 32;     // of a block; of a thread
constexpr int kMostTurns = 4;
constexpr int64_t kRowRegisters = 200;  // by the estimate; the compiler has 255 and needs some for addresses

// Takes as many warps as have registers for a row, the rows loaded ahead, and the running results of the columns. If
// short rows leave too few bytes in flight, a thread loads several rows ahead.
SerialRows rows_of_warps(const KernelExprs& exprs, const CudaMapping& mapping, int64_t steps, int64_t vector,
                         int64_t rows) {
  constexpr double kWorthwhile = 1.5;  // the gain in bytes in flight that is worth more registers
  constexpr int64_t kOfTurn = 8;       // registers, for addresses
  const int64_t lanes = mapping.lanes;
  const RowWords words = row_words(exprs, mapping, ceil_div(steps, lanes) * vector);
  SerialRows best;
  best.team = exprs.rows ? lanes : team_of_short_row(steps, rows, lanes);
  const int64_t of_warp = lanes / best.team,
                most = std::clamp<int64_t>(rows / of_warp / 2 * 2, 2, kMostThreads / lanes);
  int64_t in_flight = 0;
  for (int turns = 1; turns <= kMostTurns && in_flight < kInFlight; turns *= 2) {
    const int64_t of_thread = words.kept + words.stored * turns + kOfTurn * (turns - 1);
    const int64_t warps = std::clamp<int64_t>(kRegisters / (lanes * of_thread * best.blocks) / 2 * 2, 2, most);
    const int64_t bytes = best.blocks * warps * turns * lanes * words.stored * 4;
    const bool gains = static_cast<double>(bytes) >= kWorthwhile * static_cast<double>(in_flight);
    if (turns > 1 && (!gains || of_thread > kRowRegisters || rows < 2 * turns * warps * of_warp)) break;
    best.threads = lanes * warps;
    best.turns = turns;
    in_flight = bytes;
  }
  return best;
}

SerialRows rows_of_columns(const KernelExprs& exprs, const CudaMapping& mapping, int64_t steps, int64_t vector,
                           int64_t rows) {
  SerialRows found;
  const int64_t each = ceil_div(steps, kMostThreads);
  found.team = found.threads = round_up(ceil_div(steps, each), mapping.lanes);
  const RowWords words = row_words(exprs, mapping, each * vector);
  const int64_t registers = kRegisters / (found.team * found.blocks);
  const auto in_flight = [&] { return found.blocks * found.team * found.turns * words.stored * 4; };
  while (found.turns < kMostTurns && rows >= 4 * found.turns && in_flight() < kInFlight &&
         words.kept + 2 * found.turns * words.stored <= registers) {
    found.turns *= 2;
  }
  return found;
}

// Takes as many threads as have registers for their part of a row. More threads do not lengthen barriers or the
// computation of addresses.
SerialRows rows_of_block(const KernelExprs& exprs, const CudaMapping& mapping, int64_t steps, int64_t vector) {
  constexpr double kOver = 1.15;  // of the registers, which are an estimate
  SerialRows found;
  double least = 0;
  for (const int blocks : {2, 1}) {
    if (least != 0 && least <= kOver) break;
    for (int64_t team = kMostThreads; team >= 64; team -= mapping.lanes) {
      const int64_t each = ceil_div(steps, team);
      if (each * vector > kMostColumns || (each - 1) * team >= steps) continue;
      const RowWords words = row_words(exprs, mapping, each * vector);
      const auto wanted = static_cast<double>((words.kept + words.stored) * team * blocks);
      const double idle = static_cast<double>(each * team) / static_cast<double>(steps);
      const double cost = std::max(wanted / kRegisters, kOver) * idle;
      if (least != 0 && cost >= least) continue;
      least = cost;
      found.team = found.threads = team;
      found.blocks = blocks;
    }
  }
  found.fit = least != 0;
  return found;
}

}  // namespace

bool is_carried(const CudaMapping& mapping, const ReductionSite& site) {
  return mapping.serial && (site.reduced & bit(*mapping.serial)) != 0;
}

uint64_t streams_of_rows(const CudaMapping& mapping, int64_t columns) {
  const bool fills_warp = columns > mapping.lanes * kMostColumns / 4 && columns <= mapping.lanes * kMostColumns;
  return mapping.serial && !fills_warp ? bit(*mapping.serial) : 0;
}

SerialRows serial_rows(const KernelExprs& exprs, const CudaMapping& mapping, int64_t steps, int64_t vector,
                       int64_t rows) {
  if (steps * vector <= mapping.lanes * kMostColumns) return rows_of_warps(exprs, mapping, steps, vector, rows);
  const bool columns_alone = std::all_of(exprs.sites.begin(), exprs.sites.end(),
                                         [&](const ReductionSite& i) { return is_carried(mapping, i); });
  return columns_alone ? rows_of_columns(exprs, mapping, steps, vector, rows)
                       : rows_of_block(exprs, mapping, steps, vector);
}

}  // namespace heddle::schedule
