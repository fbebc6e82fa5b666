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
  bool early = false;     // may begin before the launch in front of it has ended
  uint32_t resident = 1;  // blocks that fit on the device at once
};

// The blocks of one launch: those that run, and in which order the others begin. Memory is kept for the next launch.
class Grid {
 public:
  void begin(const LaunchShape& shape, Random& random);
  // Starts the next cluster (or block) where one is left and fits: its threads are ready.
  bool start_group(std::vector<Thread*>& ready);
  // A block ended. Whether its cluster did.
  bool end(Block& block);

  const LaunchShape& shape() const { return shape_; }
  const std::vector<Group*>& live_groups() const { return live_groups_; }
  uint32_t live_blocks() const { return live_blocks_; }
  size_t unstarted() const { return unstarted_.size(); }

 private:
  void start_block(Block& block, Group& group, uint32_t number, uint32_t rank);

  LaunchShape shape_;
  uint32_t shared_base_ = 1024;
  std::vector<uint32_t> unstarted_;  // numbers of groups, the next one last
  uint32_t live_blocks_ = 0;
  std::vector<Group*> live_groups_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Block*> free_blocks_;
  std::vector<Group*> free_groups_;
};

// How long blocks have only polled memory while all others wait for them.
class Progress {
 public:
  void made() { stale_polls_ = 0; }
  // A value that a thread read from memory that others may change, and whether the thread changed it itself.
  void saw(const void* address, uint64_t bits, bool changed);
  // One of `pollers` threads polls. False after a few rounds without progress, so that more blocks start; many rounds
  // with all blocks running are a deadlock.
  bool may_poll(size_t pollers, const Grid& grid);
  void reset();

 private:
  uint64_t stale_polls_ = 0;
  std::unordered_map<const void*, uint64_t> seen_;  // what threads last read
};

// Who waits for what, where no thread can go on.
std::string describe_deadlock(const Grid& grid);

}  // namespace heddle::emulator
