#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/mbarrier.h"
#include "emulator/memory.h"
#include "emulator/tensor_map.h"

namespace heddle::emulator {

// A box that TMA has not copied yet.
struct Box {
  TensorMap map;
  bool store;
  int32_t at[6];  // of windows: four coordinates, then the tap in width and height
  uint32_t shared_address, barrier;
  Thread* owner;
  uint32_t blocks;  // that receive it
  uint32_t group;   // of stores
  bool late;        // not before no thread can run
  Place place;
};

// A store of st.async that has not happened yet.
struct RemoteStore {
  Block* block;  // into which
  uint8_t* to;
  std::array<uint8_t, 16> value;
  uint32_t bytes, barrier;
  Place place;
};

// What happens while threads go on and is reported to an mbarrier: boxes of TMA, stores into other blocks. Each
// operation happens at some time between when it is asked for and when somebody waits for it, so that a missing wait
// shows.
class Transfers {
 public:
  explicit Transfers(Scheduler& scheduler) : barriers(scheduler), s_(scheduler) {}

  // Forgets everything; `memory` is what TMA may touch from now on.
  void reset(const Memory& memory);

  // What the current thread asks for.
  void store_async(uint32_t to, uint32_t rank, const void* from, uint32_t bytes, uint32_t barrier, Place place);
  void copy_shared(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier, uint32_t rank, Place place);
  void add_box(Box box);
  void store_commit();
  void store_wait(uint32_t pending, Place place);

  // Lets one happen, any of those that there are.
  bool has_boxes() const { return !boxes_.empty(); }
  bool has_remote() const { return !remote_.empty(); }
  void complete_box(bool only_early);
  void complete_remote();

  // A block stays until everything that touches its shared memory has happened.
  void check_end(const Block& block);

  Mbarriers barriers;

 private:
  void copy_box(const Box& box, Block& block);

  Scheduler& s_;
  const Memory* memory_ = nullptr;
  std::vector<Box> boxes_;
  std::vector<RemoteStore> remote_;
};

// cp.async of the current thread.
void copy_async(Scheduler& s, uint32_t to, const void* from, uint32_t bytes, uint32_t valid, Place place);
void copy_commit(Scheduler& s);
void copy_wait(Scheduler& s, uint32_t pending);

}  // namespace heddle::emulator
