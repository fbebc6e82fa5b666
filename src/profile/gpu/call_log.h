#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

namespace heddle::profile {

// A call of CUDA: what its operations are told apart by, and what the caller said.
struct GpuCall {
  uint32_t correlation = 0;
  uint64_t context = 0, launched = 0;
};

// The calls of one thread. The thread adds without a lock; one reader at a time, whoever that is, takes over what is
// there and looks calls up.
class CallLog {
 public:
  CallLog();
  ~CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  // The thread's.
  void add(const GpuCall& call);
  void end() { ended_.store(true, std::memory_order_release); }  // the thread adds no more

  // The reader's.
  void take_over();
  const GpuCall* find(uint32_t correlation);
  size_t size() const { return calls_.size(); }
  void forget_oldest(size_t count);
  void forget_all();
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  std::atomic<uint64_t> calls{0}, sampled{0}, sampled_ns{0};  // written by the thread alone

 private:
  struct Chunk {
    std::array<GpuCall, 128> calls;
    std::atomic<uint32_t> count{0};
    std::atomic<Chunk*> next{nullptr};
  };
  Chunk* last_;   // the thread's
  Chunk* first_;  // the reader's
  uint32_t read_ = 0;
  std::deque<GpuCall> calls_;  // in order of correlation, which grows from call to call
  size_t hint_ = 0;            // where the last one was found
  std::atomic<bool> ended_{false};
};

}  // namespace heddle::profile
