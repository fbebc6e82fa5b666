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
  bool early = false;     // may begin before the preceding launch has ended
  uint32_t resident = 1;  // blocks that fit on the device at once
};

// The blocks of one launch: those that run, and the start order of the others. Memory is kept for the next launch.
class Grid {
 public:
  void begin(const LaunchShape& shape, Random& random);
  // Starts the next cluster (or block) if one is left and fits. Appends its threads to `ready`.
  bool start_group(std::vector<Thread*>& ready);
  // Call it when a block has ended. True if its cluster has ended too.
  bool end(Block& block);

  const LaunchShape& shape() const { return shape_; }
  const std::vector<Group*>& live_groups() const { return live_groups_; }
  uint32_t live_blocks() const { return live_blocks_; }
  size_t unstarted() const { return unstarted_.size(); }

 private:
  void start_block(Block& block, Group& group, uint32_t number, uint32_t rank);

  LaunchShape shape_;
  uint32_t shared_base_ = 1024;
  std::vector<uint32_t> unstarted_;  // numbers of groups, the next to start last
  uint32_t live_blocks_ = 0;
  std::vector<Group*> live_groups_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Block*> free_blocks_;
  std::vector<Group*> free_groups_;
};

// Tracks for how long blocks have only polled memory while all others wait for them.
class Progress {
 public:
  void made() { stale_polls_ = 0; }
  // Reports a value that a thread read from memory that other threads may change. `changed`: the thread changed it
  // itself.
  void saw(const void* address, uint64_t bits, bool changed);
  // Call it when one of `pollers` threads polls. Returns false after a few rounds without progress, so that more blocks
  // start. If all blocks run, it returns false only after many rounds, which is a deadlock.
  bool may_poll(size_t pollers, const Grid& grid);
  void reset();

 private:
  uint64_t stale_polls_ = 0;
  std::unordered_map<const void*, uint64_t> seen_;  // values that threads last read
};

// Text for a deadlock: which threads wait, and for what.
std::string describe_deadlock(const Grid& grid);

}  // namespace heddle::emulator
