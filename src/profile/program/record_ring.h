#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace heddle::profile {

// A lock-free ring buffer that passes records from a signal handler to one reader. A record is an array of words. A
// record that does not fit is refused.
template <size_t kWords>
class RecordRing {
 public:
  RecordRing() {}  // leaves the words uninitialised, so that pages are touched only when they are used

  // Returns contiguous space for a record of `words` words, or null if the ring is full. The reader sees the record
  // after commit().
  uint64_t* begin(size_t words) {
    const uint64_t head = head_.load(std::memory_order_relaxed), tail = tail_.load(std::memory_order_acquire);
    const size_t place = head % kWords, rest = kWords - place;
    const size_t skipped = rest <= words ? rest : 0;  // the record then starts at the front, after a filler
    if (head - tail + skipped + words + 1 > kWords) return nullptr;
    if (skipped != 0) words_[place] = kFiller;
    next_ = head + skipped + words + 1;
    uint64_t* record = &words_[(head + skipped) % kWords];
    *record = words;
    return record + 1;
  }
  void commit() { head_.store(next_, std::memory_order_release); }

  // Calls visit(const uint64_t* record, size_t words) for each committed record, and removes the records.
  template <typename Visit>
  void drain(const Visit& visit) {
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    const uint64_t head = head_.load(std::memory_order_acquire);
    while (tail != head) {
      const size_t place = tail % kWords;
      if (words_[place] == kFiller) {
        tail += kWords - place;
        continue;
      }
      visit(&words_[place + 1], static_cast<size_t>(words_[place]));
      tail += words_[place] + 1;
    }
    tail_.store(tail, std::memory_order_release);
  }

 private:
  static constexpr uint64_t kFiller = ~uint64_t{0};
  std::atomic<uint64_t> head_{0}, tail_{0};
  uint64_t next_ = 0;
  std::array<uint64_t, kWords> words_;
};

}  // namespace heddle::profile
