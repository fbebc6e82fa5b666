#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "emulator/memory.h"
#include "emulator/races/vector_clock.h"
#include "tile/arch/emulated/abi.h"

namespace heddle::emulator {

struct Kernel;
struct LaunchShape;
struct Thread;

using emulated::Access;
using emulated::Place;

struct MemoryAccess {
  uint64_t address = 0;
  uint32_t bytes = 0;
  Access kind = Access::kRead;
  Place place{};
  bool is_async = false;  // may complete at any time until its launch ends
};

// Finds accesses to global memory that race: two accesses of the same bytes by two threads, at least one of them a
// write and at most one of them atomic, of which neither happens before the other. Barriers, mbarriers, fences with
// atomic operations, and the ends of launches order accesses; the order in which the emulator happens to run threads
// does not. So a race is found in nearly every order of threads.
//
// Each 8 bytes of memory remember four accesses. A fifth one takes the place of an earlier one, so a race with that one
// is missed.
class Races {
 public:
  // Starts a launch and returns its number; launches of a stream have increasing numbers. `early`: it may run before
  // the preceding launch has ended. `ahead`: the emulator runs it first; number_next() has numbered the preceding
  // launch.
  uint32_t begin(bool early, bool ahead);
  void number_next(bool early);
  // A launch has ended. What it released is of no use, unless a later launch has begun.
  void end(uint32_t launch) {
    if (launch == launches_) words_.clear();
  }
  // Everything that was launched has ended.
  void end_all() { chain_ = launches_ + 1, next_ = 0; }
  // Forgets accesses to memory that is freed.
  void forget(uint64_t address, uint64_t bytes);
  // The clock of a thread at its start.
  Clock start_of(uint32_t launch, bool early) const;

  // Records an access to `memory`. If it races with an earlier access, appends a description to `race` and returns
  // false.
  bool access(const ThreadClock& thread, const Memory& memory, const MemoryAccess& access, std::string* race);

  // An atomic operation orders accesses together with fences.
  void atomic(ThreadClock& thread, uint64_t address, Access kind);

 private:
  static constexpr uint64_t kGranule = 8, kPage = 4096;
  struct Slot {
    uint32_t launch = 0, block = 0, thread = 0, time = 0;
    uint8_t bytes = 0;  // mask of bytes of the granule; 0: an empty slot
    Access kind{};
    Place place{};
  };
  using Granule = std::array<Slot, 4>;
  using Page = std::array<Granule, kPage / kGranule>;

  static bool happens_before(const Slot& earlier, const ThreadClock& thread);
  Granule& granule_at(uint64_t address);
  void remember(Granule& granule, const Slot& slot, const ThreadClock& thread);

  uint32_t launches_ = 0;  // the number of the latest launch
  uint32_t next_ = 0;      // the number of a launch that has one before it starts, or 0
  uint32_t chain_ = 1;     // the first of the launches that may overlap
  uint32_t turn_ = 0;      // the slot to replace
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  uint64_t last_number_ = 0;
  Page* last_ = nullptr;
  std::unordered_map<uint64_t, SyncClock> words_;  // by address: what atomic stores released
};

// One for the process: launches that overlap race, too.
Races& races();

// The clocks of one launch's threads. If the launch's kernel does not report its accesses, nothing is recorded.
class LaunchClocks {
 public:
  void begin(const Kernel& kernel, const LaunchShape& shape, bool ahead);
  void end();
  bool finds_races() const { return finds_races_; }
  // Sets the clocks of threads that start.
  void start(std::span<Thread* const> threads) const;
  // The thread has waited for the preceding launches.
  void wait(ThreadClock& thread) const;

  // What `thread` did happens before what follows an acquire() from the same clock.
  void release(ThreadClock& thread, SyncClock& to) const;
  void acquire(ThreadClock& thread, SyncClock& from) const;
  void fence(ThreadClock& thread) const;
  // Records an access as Races does.
  bool access(ThreadClock& thread, const Memory& memory, const MemoryAccess& access, std::string* race) const;

 private:
  bool finds_races_ = false, early_ = false;
  uint32_t launch_ = 0;
};

}  // namespace heddle::emulator
