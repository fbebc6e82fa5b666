#include "emulator/mbarrier.h"

#include <cstring>

#include "emulator/scheduler.h"

namespace heddle::emulator {

namespace {

// An mbarrier, in the eight bytes of shared memory that it has. Poisoned memory is none: `none` is 1 there.
struct TransactionBarrier {
  uint64_t pending : 20;
  uint64_t expected : 20;
  int64_t bytes : 22;
  uint64_t phase : 1;
  uint64_t none : 1;
};
static_assert(sizeof(TransactionBarrier) == 8);
constexpr uint32_t kMostArrivals = (1 << 20) - 1;
constexpr int64_t kMostBytes = (1 << 20) - 1;

TransactionBarrier load_barrier(const uint8_t* at) {
  TransactionBarrier barrier;
  std::memcpy(&barrier, at, sizeof barrier);
  return barrier;
}

}  // namespace

void Mbarriers::init(uint32_t address, uint32_t arrivals, Place place) {
  uint8_t* at = shared_at(s_, *s_.current().owner, address, 8, 8, "mbarrier", place);
  if (arrivals == 0 || arrivals > kMostArrivals) {
    s_.fail("mbarrier: a count of {} ({}:{})", arrivals, name_of(place), place.line);
  }
  TransactionBarrier barrier{};
  barrier.pending = barrier.expected = arrivals;
  std::memcpy(at, &barrier, sizeof barrier);
  if (s_.clocks.finds_races()) clocks_[at] = {};
  s_.current().owner->unfenced_init = true;
}

// Ends the phase where nothing is missing.
void Mbarriers::settle(uint8_t* at) {
  TransactionBarrier barrier = load_barrier(at);
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.phase ^= 1;
  barrier.pending = barrier.expected;
  std::memcpy(at, &barrier, sizeof barrier);
  if (s_.clocks.finds_races()) {
    PhaseClocks& clocks = clocks_[at];
    clocks.ended.add(clocks.present);
    clocks.present.clear();
  }
  const auto found = waiting_.find(at);
  if (found == waiting_.end()) return;
  for (Thread* thread : found->second) s_.wake(thread);
  waiting_.erase(found);
}

void Mbarriers::arrive(uint32_t address, uint32_t rank, uint32_t expect_bytes, Place place) {
  Block& block = rank == emulated::kOwnBlock ? *s_.current().owner : block_of_cluster(s_, rank);
  uint8_t* at = shared_at(s_, block, address, 8, 8, "mbarrier", place);
  TransactionBarrier barrier = load_barrier(at);
  if (barrier.none != 0) {
    s_.fail("the mbarrier at {:#x} is used before it is initialised ({}:{})", address, name_of(place), place.line);
  }
  if (barrier.pending == 0) {
    s_.fail("more arrivals at the mbarrier at {:#x} than its count of {} ({}:{})", address,
            static_cast<uint32_t>(barrier.expected), name_of(place), place.line);
  }
  if (rank != emulated::kOwnBlock) check_init_fence(block, place);
  const int64_t bytes = barrier.bytes + int64_t{expect_bytes};
  if (bytes > kMostBytes)
    s_.fail("the mbarrier at {:#x} waits for {} bytes ({}:{})", address, bytes, name_of(place), place.line);
  barrier.bytes = bytes;
  barrier.pending = barrier.pending - 1;
  std::memcpy(at, &barrier, sizeof barrier);
  if (s_.clocks.finds_races()) s_.clocks.release(s_.current().clock, clocks_[at].present);
  settle(at);
}

// TMA and other blocks see an mbarrier only after a fence.
void Mbarriers::check_init_fence(const Block& block, Place place) {
  if (!block.unfenced_init) return;
  s_.fail("an mbarrier is used by TMA or another block without fence_barrier_init() after its init ({}:{})",
          name_of(place), place.line);
}

void Mbarriers::complete(Block& block, uint32_t address, uint32_t bytes, const ThreadClock& from, Place place) {
  uint8_t* at = shared_at(s_, block, address, 8, 8, "mbarrier", place);
  TransactionBarrier barrier = load_barrier(at);
  if (barrier.none != 0) {
    s_.fail("a copy reports to the mbarrier at {:#x} before it is initialised ({}:{})", address, name_of(place),
            place.line);
  }
  check_init_fence(block, place);
  if (barrier.bytes - int64_t{bytes} < -kMostBytes) {
    s_.fail("the mbarrier at {:#x} received too many bytes ({}:{})", address, name_of(place), place.line);
  }
  barrier.bytes = barrier.bytes - int64_t{bytes};
  std::memcpy(at, &barrier, sizeof barrier);
  if (s_.clocks.finds_races()) clocks_[at].present.add(from);
  settle(at);
}

void Mbarriers::wait(uint32_t address, uint32_t parity, Place place) {
  uint8_t* at = shared_at(s_, *s_.current().owner, address, 8, 8, "mbarrier", place);
  for (;;) {
    const TransactionBarrier barrier = load_barrier(at);
    if (barrier.none != 0) {
      s_.fail("the mbarrier at {:#x} is used before it is initialised ({}:{})", address, name_of(place), place.line);
    }
    if (barrier.phase != (parity & 1)) {
      if (s_.clocks.finds_races()) s_.clocks.acquire(s_.current().clock, clocks_[at].ended);
      return;
    }
    waiting_[at].push_back(&s_.current());
    s_.wait(Wait::kTransactions, address, place);
  }
}

}  // namespace heddle::emulator
