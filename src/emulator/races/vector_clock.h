#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace heddle::emulator {

// What happened before a point of a launch: for each thread, how many of its releases. Clocks are shared and never
// change. Null stands for the empty clock.
struct VectorClock {
  using Releases = std::vector<uint32_t>;  // by thread of a block

  uint32_t ended = 0;                                                    // launches with lower numbers have ended
  std::unordered_map<uint64_t, std::shared_ptr<const Releases>> blocks;  // by block_key()

  static uint64_t block_key(uint32_t launch, uint32_t block) { return uint64_t{launch} << 32 | block; }
  uint32_t time_of(uint64_t key, uint32_t thread) const;
};
using Clock = std::shared_ptr<const VectorClock>;

// The least clock after both. Blocks' times that both share are not copied.
Clock join(const Clock& a, const Clock& b);

// A thread as clocks see it. `now`: the number of its releases so far, plus 1.
struct ThreadClock {
  uint32_t launch = 0, block = 0, thread = 0, threads = 0;  // threads: of the block
  uint32_t now = 1;
  Clock before;    // what happened before the thread's present operation
  Clock fenced;    // what happened before its last fence: what its relaxed stores release
  Clock observed;  // what others released to its relaxed loads: its next fence acquires it
};

// What happened before any of several releases. Adding another thread of the same block costs no copy of a clock.
class SyncClock {
 public:
  void add(const ThreadClock& thread);
  void add(const Clock& clock);
  void add(SyncClock& other);
  Clock clock();
  // What the threads had fenced and observed: a fence before a barrier counts for an atomic operation behind it, and an
  // atomic operation before a barrier for a fence behind it, whichever threads execute them.
  const Clock& fenced() const { return fenced_; }
  const Clock& observed() const { return observed_; }
  void clear() { *this = SyncClock(); }

 private:
  Clock last_;  // the clock that was added last
  Clock joined_, made_, fenced_, observed_;
  uint64_t key_ = 0;
  std::shared_ptr<VectorClock::Releases> own_;  // of releasing threads of one block, key_
};

}  // namespace heddle::emulator
