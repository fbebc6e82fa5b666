#include "emulator/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace heddle::emulator {

namespace {

void set_up_warps(Block& block) {
  constexpr uint32_t kRegisters = 65536, kMostRegisters = 248;
  const auto threads = static_cast<uint32_t>(block.threads.size());
  const uint32_t all = block.warp_lanes;
  block.warps.resize((threads + all - 1) / all);
  block.warpgroups.assign((threads + 127) / 128, {});
  // As many as launch bounds of one block per SM allow, in steps of 8.
  const auto warps = static_cast<uint32_t>(block.warps.size());
  const uint32_t registers = std::min(kMostRegisters, kRegisters / (all * warps) / 8 * 8);
  block.free_registers = kRegisters - all * warps * registers;
  for (uint32_t i = 0; i < block.warps.size(); ++i) {
    Warp& warp = block.warps[i];
    const uint32_t lanes = std::min(all, threads - all * i);
    warp.lanes = ~uint64_t{0} >> (64 - lanes);
    warp.barrier_stamp = warp.products = 0;
    warp.commits.clear();
    warp.fenced = false;
    warp.waiting.clear();
    warp.registers = registers;
    warp.registers_wanted = 0;
    for (const auto& exchange : warp.exchanges) {
      exchange->arrived = exchange->waiting_count = 0;
      exchange->clock.clear();
    }
  }
}

}  // namespace

void Grid::begin(const LaunchShape& shape, Random& random) {
  shape_ = shape;
  shared_base_ = 1024 + 128 * random.below(8);
  live_groups_.clear();
  live_blocks_ = 0;
  free_blocks_.clear();
  free_groups_.clear();
  for (const auto& block : blocks_) free_blocks_.push_back(block.get());
  for (const auto& group : groups_) free_groups_.push_back(group.get());
  const uint32_t cluster = shape.cluster.x * shape.cluster.y * shape.cluster.z;
  unstarted_.resize(size_t{shape.grid.x} * shape.grid.y * shape.grid.z / cluster);
  std::iota(unstarted_.rbegin(), unstarted_.rend(), 0);
  // GPUs start blocks in the order of their numbers, so a block may wait for earlier ones; the order in which resident
  // blocks run is unknown.
  const size_t together = std::max<size_t>(shape.resident / cluster, 1);
  for (size_t end = unstarted_.size(); end > 0; end -= std::min(together, end)) {
    const size_t begin = end - std::min(together, end);
    for (size_t i = end; i > begin + 1; --i) {
      std::swap(unstarted_[i - 1], unstarted_[begin + random.below(static_cast<uint32_t>(i - begin))]);
    }
  }
}

void Grid::start_block(Block& block, Group& group, uint32_t number, uint32_t rank) {
  const emulated::Dim& grid = shape_.grid;
  block.block_index = {number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
  block.block_dim = shape_.block;
  block.grid_dim = grid;
  block.cluster_rank = rank;
  block.cluster_blocks = static_cast<uint32_t>(group.blocks.size());
  block.group = &group;
  block.warp_lanes = shape_.warp_lanes;
  block.set_shared(shape_.shared_bytes, shared_base_);
  const uint32_t threads = shape_.block.x * shape_.block.y * shape_.block.z;
  block.live_threads = threads;
  block.async_fences = block.barrier_stamp = 0;
  block.resumed_since_poll = 64 * threads;
  block.unfenced_init = false;
  block.waited = false;
  block.threads.resize(threads);
  set_up_warps(block);
  for (Barrier& barrier : block.barriers) {
    barrier.expected = barrier.arrived = barrier.any = barrier.count = 0;
    barrier.all = 1;
    barrier.waiting.clear();
    barrier.clock.clear();
  }
  for (std::vector<Copy>& copies : block.copies) copies.clear();
  for (uint32_t i = 0; i < threads; ++i) {
    Thread& thread = block.threads[i];
    thread = Thread{};
    thread.thread_index = {i % shape_.block.x, i / shape_.block.x % shape_.block.y,
                           i / shape_.block.x / shape_.block.y};
    thread.linear = i;
    thread.block = thread.owner = &block;
    thread.warp = &block.warps[i / block.warp_lanes];
  }
  ++live_blocks_;
}

bool Grid::start_group(std::vector<Thread*>& ready) {
  const emulated::Dim c = shape_.cluster;
  const uint32_t size = c.x * c.y * c.z;
  if (unstarted_.empty() || (live_blocks_ > 0 && live_blocks_ + size > shape_.resident)) return false;
  const uint32_t number = unstarted_.back();
  unstarted_.pop_back();
  if (free_groups_.empty()) {
    groups_.push_back(std::make_unique<Group>());
    free_groups_.push_back(groups_.back().get());
  }
  Group& group = *free_groups_.back();
  free_groups_.pop_back();
  group.blocks.assign(size, nullptr);
  group.live_blocks = size;
  group.live_threads = size * shape_.block.x * shape_.block.y * shape_.block.z;
  group.cluster_arrived = group.cluster_phase = 0;
  group.cluster_waiting.clear();
  group.cluster_clock.clear();
  group.cluster_released.clear();
  for (Block*& block : group.blocks) {
    if (free_blocks_.empty()) {
      blocks_.push_back(std::make_unique<Block>());
      free_blocks_.push_back(blocks_.back().get());
    }
    block = free_blocks_.back();
    free_blocks_.pop_back();
  }
  const emulated::Dim groups = {shape_.grid.x / c.x, shape_.grid.y / c.y, shape_.grid.z / c.z};
  const emulated::Dim first = {number % groups.x * c.x, number / groups.x % groups.y * c.y,
                               number / groups.x / groups.y * c.z};
  for (uint32_t rank = 0; rank < size; ++rank) {
    const uint32_t x = first.x + rank % c.x, y = first.y + rank / c.x % c.y, z = first.z + rank / c.x / c.y;
    start_block(*group.blocks[rank], group, x + shape_.grid.x * (y + shape_.grid.y * z), rank);
    for (Thread& thread : group.blocks[rank]->threads) ready.push_back(&thread);
  }
  live_groups_.push_back(&group);
  return true;
}

bool Grid::end(Block& block) {
  Group& group = *block.group;
  --live_blocks_;
  if (--group.live_blocks > 0) return false;
  for (Block* ended : group.blocks) free_blocks_.push_back(ended);
  free_groups_.push_back(&group);
  std::erase(live_groups_, &group);
  return true;
}

void Progress::saw(const void* address, uint64_t bits, bool changed) {
  if (changed) return made();
  const auto [seen, is_new] = seen_.try_emplace(address, bits);
  if (!is_new && seen->second == bits) return;
  seen->second = bits;
  made();
}

bool Progress::may_poll(size_t pollers, const Grid& grid) {
  constexpr uint64_t kPolls = 100000, kLeastRounds = 1000, kMostRounds = 10000;
  const uint64_t each = pollers + 1;
  const bool all_run = grid.unstarted() == 0 || grid.live_blocks() >= grid.shape().resident;
  const uint64_t most = each * (all_run ? std::clamp(kPolls / each, kLeastRounds, kMostRounds) : 4);
  return stale_polls_++ <= most;
}

void Progress::reset() {
  made();
  seen_.clear();
}

std::string describe_deadlock(const Grid& grid) {
  struct Where {
    Wait wait;
    uint64_t detail;
    std::string file;
    uint32_t line;
    auto operator<=>(const Where&) const = default;
  };
  struct Waiting {
    uint64_t threads = 0, block = ~uint64_t{0};  // the number of the first block
  };
  std::map<Where, Waiting> waiting;
  uint64_t finished = 0, blocks = 0;
  for (const Group* group : grid.live_groups()) {
    for (const Block* block : group->blocks) {
      ++blocks;
      const emulated::Dim &at = block->block_index, &dim = block->grid_dim;
      const uint64_t number = at.x + uint64_t{dim.x} * (at.y + uint64_t{dim.y} * at.z);
      for (const Thread& thread : block->threads) {
        if (thread.wait == Wait::kFinished) {
          ++finished;
        } else {
          Waiting& w = waiting[{thread.wait, thread.detail, name_of(thread.place), thread.place.line}];
          ++w.threads;
          w.block = std::min(w.block, number);
        }
      }
    }
  }
  std::string text = fmt::format("deadlock in {} block(s), {} not started:", blocks, grid.unstarted());
  const emulated::Dim& dim = grid.shape().grid;
  for (const auto& [where, who] : waiting) {
    std::string what;
    switch (where.wait) {
      case Wait::kBarrier:
        what = where.detail == 0 ? "in __syncthreads" : fmt::format("in barrier {}", where.detail);
        break;
      case Wait::kLanes:
        what = fmt::format("for the lanes {:#010x} of their warp", where.detail);
        break;
      case Wait::kCluster:
        what = "in the barrier of the cluster";
        break;
      case Wait::kPoll:
        what = "for a value in memory";
        break;
      case Wait::kTransactions:
        what = fmt::format("for the barrier at shared address {:#x}", where.detail);
        break;
      case Wait::kStores:
        what = "for their stores";
        break;
      case Wait::kProducts:
        what = "for a wgmma that not all warps of the warpgroup asked for";
        break;
      case Wait::kPrevious:
        what = "for the launch in front";
        break;
      case Wait::kRegisters:
        what = fmt::format("for {} registers each", where.detail);
        break;
      default:
        what = "for nothing known";
    }
    text += fmt::format(" {} thread(s) wait {} ({}:{}), first in block ({}, {}, {});", who.threads, what, where.file,
                        where.line, who.block % dim.x, who.block / dim.x % dim.y, who.block / dim.x / dim.y);
  }
  return text + fmt::format(" {} have ended", finished);
}

}  // namespace heddle::emulator
