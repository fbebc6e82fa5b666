#include "target/cuda_occupancy.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle {
namespace {

constexpr uint32_t kMostThreads = 1024, kMostCluster = 16;  // of a block; blocks of a cluster
constexpr uint32_t kThreadsOfSm = 2048, kBlocksOfSm = 32;

}  // namespace

int resident_blocks(const GpuTarget& target, uint32_t threads, uint32_t shared_bytes, int most_registers) {
  if (threads == 0 || threads > kMostThreads || shared_bytes > target.shared_bytes_per_block) return 0;
  const auto lanes = static_cast<uint32_t>(target.lanes), warps = (threads + lanes - 1) / lanes;
  const auto registers = static_cast<uint32_t>(target.registers_per_sm);
  // Registers come to warps by 8 for each thread.
  const uint32_t each = std::min(static_cast<uint32_t>(most_registers), registers / (warps * lanes) / 8 * 8);
  const int64_t reserved = target.reserved_shared_bytes;
  const auto by_shared = static_cast<uint32_t>((target.shared_bytes_per_block + reserved) /
                                               std::max<int64_t>(int64_t{shared_bytes} + reserved, 1));
  return static_cast<int>(
      std::min({registers / (each * warps * lanes), by_shared, kThreadsOfSm / (warps * lanes), kBlocksOfSm}));
}

std::string reject_waiting(const CudaLaunch& launch, const GpuTarget& target) {
  if (!launch.cooperative && launch.cluster <= 1) return {};
  const int each = resident_blocks(target, launch.block, launch.shared_bytes);
  if (each == 0) {
    return fmt::format("a block of {} threads and {} bytes of shared memory is more than a SM has", launch.block,
                       launch.shared_bytes);
  }
  const uint64_t most = static_cast<uint64_t>(target.sms) * static_cast<uint64_t>(each);
  if (launch.cluster > 1 && (!target.has_clusters() || launch.cluster > kMostCluster || launch.cluster > most ||
                             launch.grid[0] % launch.cluster != 0)) {
    return fmt::format("a cluster of {} blocks in a grid of {}", launch.cluster, launch.grid[0]);
  }
  const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  if (launch.cooperative && blocks > most) {
    return fmt::format("{} blocks wait for each other, of which {} SMs hold {} at once", blocks, target.sms, most);
  }
  return {};
}

bool is_one_wave(const CudaLaunch& launch, const GpuTarget& target, int registers) {
  const int each = resident_blocks(target, launch.block, launch.shared_bytes, registers);
  return uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2] <= static_cast<uint64_t>(target.sms) * each;
}

}  // namespace heddle
