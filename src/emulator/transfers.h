#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/mbarrier.h"
#include "emulator/memory.h"
#include "emulator/tensor_map.h"

namespace heddle::emulator {

// A pending TMA copy of a box.
struct Box {
  TensorMap map;
  bool store;
  int32_t at[6];  // for im2col windows: four coordinates, then the offsets of the tap in width and height
  uint32_t shared_address, barrier;
  Thread* owner;
  uint32_t blocks;    // bit mask of the blocks that receive the box
  uint32_t group;     // bulk group of a store
  bool late;          // copied only when no thread can run
  ThreadClock clock;  // of the owner when it asked for the copy
  Place place;
};

// A pending st.async: a store to the shared memory of another block.
struct RemoteStore {
  Block* block;  // the destination
  uint8_t* to;
  std::array<uint8_t, 16> value;
  uint32_t bytes, barrier;
  ThreadClock clock;  // of the thread that stores
  Place place;
};

// Asynchronous operations that signal an mbarrier: TMA copies of boxes and stores to other blocks. Each operation
// completes at a random time between its issue and the first wait for it. So a missing wait shows as an error.
class Transfers {
 public:
  explicit Transfers(Scheduler& scheduler) : barriers(scheduler), s_(scheduler) {}

  // Discards all pending operations. From now on, TMA may access only `memory`.
  void reset(const Memory& memory);

  // These functions issue operations of the current thread.
  void store_async(uint32_t to, uint32_t rank, const void* from, uint32_t bytes, uint32_t barrier, Place place);
  void copy_shared(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier, uint32_t rank, Place place);
  void add_box(Box box);
  void store_commit();
  void store_wait(uint32_t pending, Place place);

  // complete_box() and complete_remote() complete one pending operation, chosen at random. With `only_early`, nothing
  // happens if the chosen box is `late`.
  bool has_boxes() const { return !boxes_.empty(); }
  bool has_remote() const { return !remote_.empty(); }
  void complete_box(bool only_early);
  void complete_remote();

  // Checks, when a block ends, that no pending operation still accesses its shared memory.
  void check_end(const Block& block);

  Mbarriers barriers;

 private:
  void copy_box(Box& box, Block& block);

  Scheduler& s_;
  const Memory* memory_ = nullptr;
  std::vector<Box> boxes_;
  std::vector<RemoteStore> remote_;
};

// These functions emulate cp.async and its commit and wait, for the current thread.
void copy_async(Scheduler& s, uint32_t to, const void* from, uint32_t bytes, uint32_t valid, Place place);
void copy_commit(Scheduler& s);
void copy_wait(Scheduler& s, uint32_t pending);

}  // namespace heddle::emulator
