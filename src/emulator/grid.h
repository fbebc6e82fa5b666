#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/block.h"
#include "emulator/random.h"

namespace heddle::emulator {

struct LaunchShape {
  emulated::Dim grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  uint32_t shared_bytes = 0;
  bool cooperative = false;
  bool early = false;  // may begin before the previous launch has ended
  uint32_t warp_lanes = 32;
  uint32_t resident = 1;  // number of blocks that fit on the device at once
};

// The blocks of one launch: the running blocks, and the start order of those that have not started. Memory is reused by
// the next launch.
class Grid {
 public:
  void begin(const LaunchShape& shape, Random& random);
  // Starts the next cluster (or block) if there is one and it fits on the device. Appends its threads to `ready`.
  bool start_group(std::vector<Thread*>& ready);
  // To be called when a block has ended. Returns true if the whole cluster has ended.
  bool end(Block& block);

  const LaunchShape& shape() const { return shape_; }
  const std::vector<Group*>& live_groups() const { return live_groups_; }
  uint32_t live_blocks() const { return live_blocks_; }
  size_t unstarted() const { return unstarted_.size(); }

 private:
  void start_block(Block& block, Group& group, uint32_t number, uint32_t rank);

  LaunchShape shape_;
  uint32_t shared_base_ = 1024;
  std::vector<uint32_t> unstarted_;  // numbers of groups in reverse start order
  uint32_t live_blocks_ = 0;
  std::vector<Group*> live_groups_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Block*> free_blocks_;
  std::vector<Group*> free_groups_;
};

// Detects deadlocks. Counts the polls of memory since a thread last made progress.
class Progress {
 public:
  void made() { stale_polls_ = 0; }
  // Records that a thread read `bits` from memory that other threads may change. A new value counts as progress.
  // `changed`: the thread itself changed the value, which is progress, too.
  void saw(const void* address, uint64_t bits, bool changed);
  // To be called when one of `pollers` threads polls. Returns false after a few rounds without progress, so that more
  // blocks start. If no more blocks can start, it returns false only after many rounds; this is then a deadlock.
  bool may_poll(size_t pollers, const Grid& grid);
  void reset();

 private:
  uint64_t stale_polls_ = 0;
  std::unordered_map<const void*, uint64_t> seen_;  // the value last read from each address
};

// Describes a deadlock: the waiting threads, and what each of them waits for.
std::string describe_deadlock(const Grid& grid);

}  // namespace heddle::emulator
