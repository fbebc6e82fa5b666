#include "schedule/region/cuda/cta_group.h"

#include <algorithm>
#include <numeric>

#include "base/divide.h"

namespace heddle::schedule {
namespace {

constexpr int kMostBlocks = 8;  // of a cluster that every device takes

// How many blocks run at once in clusters of `blocks`, `each` to a SM. Clusters of more than two leave some
// SMs of each group idle.
int64_t resident(const GpuTarget& target, int blocks, int64_t each) {
  const int64_t all = target.sms * each;
  return blocks <= 2 ? all : std::max<int64_t>(all * 10 / 11, 1);
}

// Of a block whose threads have `vectors` each.
int threads_for(int64_t steps) {
  constexpr int64_t kVectors = 8;  // as many loads in flight as registers hold at little cost
  const int64_t wanted = std::max(ceil_div(steps, kVectors), std::min<int64_t>(ceil_div(steps, 4), 256));
  return static_cast<int>(std::clamp<int64_t>(ceil_div(wanted, 32) * 32, 64, 512));
}

std::optional<CtaGroup> cluster_for_columns(const GpuTarget& target, int64_t rows, int64_t columns, int64_t others,
                                            ElementBytes element) {
  constexpr int64_t kMostKept = 180 << 10;  // bytes of a block, on the chip in 32 bits at least
  constexpr int64_t kVectors = 16;          // of a thread, as loads in flight
  constexpr int64_t kHalf = 100 << 10;      // bytes of a block, where two fit
  struct Segment {
    int64_t bytes;
    double cost;   // of moving a byte in such pieces, measured
    double least;  // SMs with work, of all
  };
  constexpr Segment kSegments[] = {{128, 1, 0.45}, {64, 1.1, 0.45}, {32, 1.6, 0.75}};
  if (!target.has_clusters()) return std::nullopt;
  const int64_t bytes = element.widest;
  std::optional<CtaGroup> best;
  double fewest = 0;
  for (const Segment& segment : kSegments) {
    const int64_t wide = segment.bytes / bytes;
    if (columns % wide != 0) continue;
    for (int blocks = 1; blocks <= kMostBlocks; blocks *= 2) {
      const int64_t kept = ceil_div(rows, blocks) * wide, all = columns / wide * others * blocks;
      if (kept * std::max<int64_t>(element.together, 4) > kMostKept ||
          static_cast<double>(all) < segment.least * target.sms)
        continue;
      if (kept < 2048 && blocks > 1) break;
      const int64_t together = ceil_div(all, resident(target, blocks, 1));
      const double moved = 2.0 * static_cast<double>(rows * columns * others * bytes);
      const double busy = moved / static_cast<double>(all) * static_cast<double>(together);
      // Blocks that wait for others to end leave SMs idle in the last turn.
      const int64_t at_once = resident(target, blocks, kept * element.together <= kHalf ? 2 : 1);
      const double idle =
          all <= at_once ? 1 : static_cast<double>(ceil_div(all, at_once) * at_once) / static_cast<double>(all);
      const double us =
          segment.cost * idle *
              std::max(moved / (target.model.chip.copy_tbps * 1e6), busy / (target.model.chip.sm_gbps * 1e3)) +
          (blocks > 1 ? target.model.chip.cluster_barrier_us : 0);
      if (best && us > 0.97 * fewest) continue;
      fewest = us;
      const int64_t threads = ceil_div(kept, kVectors * (16 / bytes)) / 128 * 128;
      best = CtaGroup{blocks, static_cast<int>(std::clamp<int64_t>(threads, 256, 512)), wide,
                      static_cast<int>(std::clamp<int64_t>(together, 1, 2))};
    }
  }
  return best;
}

// By a grid that runs at once, a block on each SM, whose cta_groups exchange results through memory.
std::optional<CtaGroup> grid_for_columns(const GpuTarget& target, int64_t rows, int64_t columns, int64_t others,
                                         int vector, ElementBytes element) {
  constexpr int kThreads = 512;         // at most 128 registers each: a block is always resident
  constexpr int64_t kMostColumns = 64;  // of a block, which reads the parts of all blocks of its cta_group
  constexpr int64_t kLeastKept = int64_t{kThreads} * 4;  // elements of a block: fewer are not worth the exchange
  constexpr int64_t kExchanged = 16;  // bytes of a thread's part of a column, where blocks combine theirs
  constexpr double kPacket = 16;      // bytes of a part in memory
  const int64_t bytes = element.widest;
  std::optional<CtaGroup> best;
  double fewest = 0;
  const double moved = 2.0 * static_cast<double>(rows * columns * others * bytes);
  for (const auto& [segment, cost] : {std::pair<int64_t, double>{128, 1}, {64, 1.1}, {columns * bytes, 1.6}}) {
    const int64_t wide = segment / bytes, vectors = wide / vector;
    if (wide > kMostColumns || columns % wide != 0 || wide % vector != 0 || kThreads % vectors != 0) continue;
    const int64_t cta_groups = columns / wide * others, blocks = target.sms / cta_groups;
    if (blocks < 2 || vectors == kThreads) continue;
    // Threads of a warp with the same columns combine theirs first.
    const int64_t parts = vectors < 32 && 32 % vectors == 0 ? kThreads / 32 * wide : int64_t{kThreads} * vector;
    const int64_t reserve = std::max<int64_t>(parts, kThreads) * kExchanged + 4096;
    const int64_t turns = ceil_div(rows, blocks * (kThreads / vectors)), kept = turns * kThreads * vector;
    if (kept * element.together > target.shared_bytes_per_block - reserve || rows * wide / blocks < kLeastKept)
      continue;
    const double us = cost * moved / (target.model.chip.copy_tbps * 1e6) +
                      static_cast<double>(blocks * wide) * kPacket / target.model.chip.exchange_per_us;
    if (best && us >= fewest) continue;
    fewest = us;
    best = CtaGroup{static_cast<int>(blocks), kThreads, wide, 1, true};
  }
  return best;
}

}  // namespace

std::optional<CtaGroup> cta_group_for_rows(const GpuTarget& target, int64_t rows, int64_t steps, int vector,
                                           double bytes, bool again, int least_blocks) {
  constexpr int64_t kLeastSteps = 256;              // of a block: fewer are not worth the exchange
  constexpr int64_t kMostKept = int64_t{200} << 8;  // elements of a block in registers or shared memory
  constexpr double kAgain = 1.5;                    // what does not stay on the chip is read again
  if (!target.has_clusters() || rows < 1) return std::nullopt;
  int best = 1;
  bool best_is_kept = false;
  double least = 0;
  for (int blocks = least_blocks; blocks <= kMostBlocks; blocks *= 2) {
    const int64_t own = ceil_div(steps, blocks), all = rows * blocks;
    if (blocks > 1 && (own < kLeastSteps || blocks > target.sms)) break;
    const bool kept = own * vector <= kMostKept;
    const int64_t words = ceil_div(own, threads_for(own)) * vector;
    // Values that are read a single time need not stay in registers.
    const int64_t registers = std::min<int64_t>(again ? 40 + 3 * words / 2 : 64, 128) * threads_for(own);
    const int64_t each =
        std::max<int64_t>(1, std::min(target.registers_per_sm / registers, 2048 / int64_t{threads_for(own)}));
    const auto busy = static_cast<double>(ceil_div(all, resident(target, blocks, 1))) / blocks;  // rows of one
    const auto turns = static_cast<double>(ceil_div(all, resident(target, blocks, each)));
    double us = std::max(
        static_cast<double>(rows) * bytes / (target.model.chip.copy_tbps * 1e6),
        busy * bytes / std::min(target.model.chip.sm_gbps * 1e3, target.model.chip.copy_tbps * 1e6 * 1.3 / target.sms));
    if (again && !kept) us *= kAgain;
    us += (turns - 1) * target.model.chip.cluster_turn_us * (blocks > 1);
    if (blocks > 1) us += 2 * target.model.chip.cluster_barrier_us;
    // More blocks pay where they are clearly faster, or where a row then fits: they have more loads under way.
    if (least == 0 || us < (kept && !best_is_kept && blocks > 1 ? 1.03 : 0.97) * least) {
      least = us;
      best = blocks;
      best_is_kept = kept;
    }
  }
  if (best == 1) return std::nullopt;
  const int threads = threads_for(ceil_div(steps, best));
  const auto together = ceil_div(rows * best, resident(target, best, 1));
  return CtaGroup{best, threads, 0, static_cast<int>(std::clamp<int64_t>(together, 1, 1024 / threads))};
}

std::optional<CtaGroup> cta_group_for_columns(const GpuTarget& target, int64_t rows, int64_t columns, int64_t others,
                                              int vector, ElementBytes bytes) {
  // A cluster first: its blocks exchange results without memory, which is worth more than twice the blocks.
  if (const auto cluster = cluster_for_columns(target, rows, columns, others, bytes)) return cluster;
  return grid_for_columns(target, rows, columns, others, vector, bytes);
}

std::optional<CtaGroup> cta_group_for_sums(const GpuTarget& target, int64_t rows, int64_t columns, int64_t others,
                                           int64_t segment, int vector) {
  constexpr int64_t kLeastPoints = 512, kMostThreads = 512;  // of a block
  if (!target.has_clusters() || columns % segment != 0 || segment % vector != 0) return std::nullopt;
  const int64_t vectors = segment / vector, clusters = columns / segment * others;
  int blocks = kMostBlocks;
  const auto points = [&] { return rows * vectors / blocks; };
  while (blocks > 2 && (clusters * blocks > 2 * target.sms || points() < kLeastPoints)) blocks /= 2;
  if (points() < kLeastPoints || blocks > target.sms) return std::nullopt;
  const int64_t whole = std::lcm(vectors, int64_t{32});  // a thread stays with its columns
  if (whole > kMostThreads) return std::nullopt;
  const int64_t threads = std::clamp<int64_t>(points() / 4 / whole, 1, kMostThreads / whole) * whole;
  const int64_t together = ceil_div(clusters * blocks, resident(target, blocks, 1));
  return CtaGroup{blocks, static_cast<int>(threads), segment,
                  static_cast<int>(std::clamp<int64_t>(together, 1, 1024 / threads))};
}

}  // namespace heddle::schedule
