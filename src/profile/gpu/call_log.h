#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

namespace heddle::profile {

// A CUDA call: the number that its operations carry, the caller's Options::context, and the time of the call.
struct GpuCall {
  uint32_t correlation = 0;
  uint64_t context = 0, launched = 0;
};

// The calls of one thread, which adds them without a lock. One reader at a time, from any thread, takes the new calls
// over and looks calls up.
class CallLog {
 public:
  CallLog();
  ~CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  // For the thread that makes the calls.
  void add(const GpuCall& call);
  void end() { ended_.store(true, std::memory_order_release); }  // the thread adds no more

  // For the reader.
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
  size_t hint_ = 0;            // where find() found the last call
  std::atomic<bool> ended_{false};
};

}  // namespace heddle::profile
