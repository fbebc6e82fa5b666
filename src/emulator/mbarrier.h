#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulator/block.h"

namespace heddle::emulator {

class Scheduler;

// Emulates mbarrier objects: barriers in shared memory that count arrivals and bytes.
class Mbarriers {
 public:
  explicit Mbarriers(Scheduler& scheduler) : s_(scheduler) {}
  void clear() {
    waiting_.clear();
    clocks_.clear();
  }

  void init(uint32_t address, uint32_t arrivals, Place place);
  void arrive(uint32_t address, uint32_t rank, uint32_t expect_bytes, Place place);
  void wait(uint32_t address, uint32_t parity, Place place);
  // Subtracts the bytes of a completed copy from the bytes that the barrier at `address` of `block` still expects.
  // `from`: the clock of the thread that asked for the copy.
  void complete(Block& block, uint32_t address, uint32_t bytes, const ThreadClock& from, Place place);

 private:
  void settle(uint8_t* barrier);
  void check_init_fence(const Block& block, Place place);

  Scheduler& s_;
  std::unordered_map<uint8_t*, std::vector<Thread*>> waiting_;
  struct PhaseClocks {
    SyncClock present, ended;  // of arrivals in the present phase; in earlier ones
  };
  std::unordered_map<uint8_t*, PhaseClocks> clocks_;  // for races
};

}  // namespace heddle::emulator
