#include "emulator/races/vector_clock.h"

#include <algorithm>

namespace heddle::emulator {
namespace {

using Releases = VectorClock::Releases;

std::shared_ptr<const Releases> join(const std::shared_ptr<const Releases>& a,
                                     const std::shared_ptr<const Releases>& b) {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  auto joined = std::make_shared<Releases>(*a);
  if (joined->size() < b->size()) joined->resize(b->size());
  for (size_t i = 0; i < b->size(); ++i) (*joined)[i] = std::max((*joined)[i], (*b)[i]);
  return *joined == *a ? a : *joined == *b ? b : joined;
}

}  // namespace

uint32_t VectorClock::time_of(uint64_t key, uint32_t thread) const {
  const auto found = blocks.find(key);
  return found == blocks.end() || thread >= found->second->size() ? 0 : (*found->second)[thread];
}

Clock join(const Clock& a, const Clock& b) {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  // The threads that leave a barrier join the same two clocks.
  struct Joined {
    Clock a, b, result;
  };
  static Joined& known = *new Joined();  // threads may still call while the process ends
  if (a == known.a && b == known.b) return known.result;
  auto joined = std::make_shared<VectorClock>(*a);
  joined->ended = std::max(a->ended, b->ended);
  bool is_a = joined->ended == a->ended;
  for (const auto& [key, times] : b->blocks) {
    auto& own = joined->blocks[key];
    const auto both = join(own, times);
    is_a = is_a && both == own;
    own = both;
  }
  known = {a, b, is_a ? a : joined};
  return known.result;
}

void SyncClock::add(const ThreadClock& thread) {
  add(thread.before);
  fenced_ = join(fenced_, thread.fenced);
  observed_ = join(observed_, thread.observed);
  const uint64_t key = VectorClock::block_key(thread.launch, thread.block);
  if (own_ != nullptr && key_ != key) joined_ = clock(), own_ = nullptr;
  made_ = nullptr;
  key_ = key;
  if (own_ == nullptr) own_ = std::make_shared<Releases>(thread.threads);
  uint32_t& time = (*own_)[thread.thread];
  time = std::max(time, thread.now);
}

void SyncClock::add(const Clock& clock) {
  if (clock == last_) return;
  made_ = nullptr;
  joined_ = join(joined_, clock);
  last_ = clock;
}

void SyncClock::add(SyncClock& other) {
  add(other.clock());
  fenced_ = join(fenced_, other.fenced_);
  observed_ = join(observed_, other.observed_);
}

Clock SyncClock::clock() {
  if (made_ != nullptr || own_ == nullptr) return made_ != nullptr ? made_ : joined_;
  auto own = std::make_shared<VectorClock>();
  own->blocks[key_] = std::make_shared<Releases>(*own_);
  made_ = join(joined_, own);
  return made_;
}

}  // namespace heddle::emulator
