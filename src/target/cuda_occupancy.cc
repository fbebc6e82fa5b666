#include "target/cuda_occupancy.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle {
namespace {

constexpr uint32_t kMostThreads = 1024, kMostCluster = 16;  // of a block; blocks of a cluster
constexpr uint32_t kThreadsOfSm = 2048, kBlocksOfSm = 32;
constexpr int64_t kReserved = 1024;  // bytes of shared memory that each block costs beside its own

}  // namespace

int resident_blocks(const CudaTarget& target, uint32_t threads, uint32_t shared_bytes, int most_registers) {
  if (threads == 0 || threads > kMostThreads || shared_bytes > target.shared_bytes_per_block) return 0;
  const uint32_t warps = (threads + 31) / 32;
  const auto registers = static_cast<uint32_t>(target.registers_per_sm);
  // Registers come to warps by 8 for each thread.
  const uint32_t each = std::min(static_cast<uint32_t>(most_registers), registers / (warps * 32) / 8 * 8);
  const auto by_shared =
      static_cast<uint32_t>((target.shared_bytes_per_block + kReserved) / (int64_t{shared_bytes} + kReserved));
  return static_cast<int>(
      std::min({registers / (each * warps * 32), by_shared, kThreadsOfSm / (warps * 32), kBlocksOfSm}));
}

std::string reject_waiting(const CudaLaunch& launch, const CudaTarget& target) {
  if (!launch.cooperative && launch.cluster <= 1) return {};
  const int each = resident_blocks(target, launch.block, launch.shared_bytes);
  if (each == 0) {
    return fmt::format("a block of {} threads and {} bytes of shared memory is more than a SM has", launch.block,
                       launch.shared_bytes);
  }
  const uint64_t most = static_cast<uint64_t>(target.sms) * static_cast<uint64_t>(each);
  if (launch.cluster > 1 && (target.sm < 90 || launch.cluster > kMostCluster || launch.cluster > most ||
                             launch.grid[0] % launch.cluster != 0)) {
    return fmt::format("a cluster of {} blocks in a grid of {}", launch.cluster, launch.grid[0]);
  }
  const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  if (launch.cooperative && blocks > most) {
    return fmt::format("{} blocks wait for each other, of which {} SMs hold {} at once", blocks, target.sms, most);
  }
  return {};
}

bool is_one_wave(const CudaLaunch& launch, const CudaTarget& target, int registers) {
  const int each = resident_blocks(target, launch.block, launch.shared_bytes, registers);
  return uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2] <= static_cast<uint64_t>(target.sms) * each;
}

}  // namespace heddle
