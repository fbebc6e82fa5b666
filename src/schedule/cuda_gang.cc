#include "schedule/cuda_gang.h"

#include <algorithm>

namespace heddle::schedule {
namespace {

constexpr int kMostBlocks = 8;  // of a cluster that every device takes
constexpr int kClusters = 90;   // the first architecture that has them

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::optional<CudaGang> gang_for_rows(const CudaTarget& target, int64_t rows, int64_t steps, int vector) {
  constexpr int64_t kLeastSteps = 256;              // of a block: fewer are not worth the exchange
  constexpr int64_t kKept = int64_t{512} * 64;      // elements that a block keeps in registers
  constexpr int64_t kMostKept = int64_t{200} << 8;  // or in shared memory
  if (target.sm < kClusters || rows < 1) return std::nullopt;
  int blocks = 1;
  const auto elements = [&](int n) { return ceil_div(steps, n) * vector; };
  // Enough blocks for the device, and parts that stay in registers.
  while (blocks < kMostBlocks && ceil_div(steps, 2 * blocks) >= kLeastSteps &&
         (2 * rows * blocks < 3 * target.sms || elements(blocks) > kKept)) {
    blocks *= 2;
  }
  if (blocks == 1 || elements(blocks) > kMostKept) return std::nullopt;
  const int64_t each = ceil_div(ceil_div(steps, blocks), 4);  // four vectors a thread
  const auto threads = static_cast<int>(std::clamp<int64_t>(ceil_div(each, 32) * 32, 64, 512));
  return CudaGang{blocks, threads, 0};
}

std::optional<CudaGang> gang_for_columns(const CudaTarget& target, int64_t rows, int64_t columns, int64_t others,
                                         int64_t bytes) {
  constexpr int64_t kMostKept = int64_t{180} << 8;  // elements of a block, on the chip as f32
  constexpr int kThreads = 512;
  if (target.sm < kClusters) return std::nullopt;
  // The widest segments that leave no multiprocessor idle.
  for (int64_t segment : {128, 64, 32}) {
    const int64_t wide = segment / bytes;
    if (columns % wide != 0) continue;
    for (int blocks = 1; blocks <= kMostBlocks; blocks *= 2) {
      const int64_t kept = ceil_div(rows, blocks) * wide, all = columns / wide * others * blocks;
      if (kept > kMostKept || all < target.sms * 3 / 4) continue;
      if (kept < kThreads * 4 && blocks > 1) break;
      return CudaGang{blocks, kThreads, wide};
    }
  }
  return std::nullopt;
}

std::optional<CudaGang> grid_for_columns(const CudaTarget& target, int64_t rows, int64_t columns, int vector) {
  constexpr int kThreads = 512;          // at most 128 registers each: a block is always resident
  constexpr int64_t kMostColumns = 256;  // every block reads the parts of all
  constexpr int64_t kLeastKept = int64_t{kThreads} * 8, kReserve = 24 << 10;
  const int64_t most = (target.shared_bytes_per_block - kReserve) / 4;
  const int64_t vectors = columns / vector;
  if (columns % vector != 0 || columns > kMostColumns || kThreads % vectors != 0) return std::nullopt;
  const int64_t turns = ceil_div(rows, target.sms * (kThreads / vectors)), kept = turns * kThreads * vector;
  if (kept > most || kept < kLeastKept) return std::nullopt;
  return CudaGang{target.sms, kThreads, columns};
}

}  // namespace heddle::schedule
