#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

namespace heddle::profile {

// A CUDA call: the correlation number of its operations, the caller's Options::context, and the time of the call.
struct GpuCall {
  uint32_t correlation = 0;
  uint64_t context = 0, launched = 0;
};

// The CUDA calls of one thread. The thread adds calls without a lock. One reader at a time, in any thread, takes over
// the new calls and looks up calls.
class CallLog {
 public:
  CallLog();
  ~CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  // Called by the thread that makes the CUDA calls.
  void add(const GpuCall& call);
  void end() { ended_.store(true, std::memory_order_release); }  // the thread will not add more calls

  // Called by the reader.
  void take_over();
  const GpuCall* find(uint32_t correlation);
  size_t size() const { return calls_.size(); }
  void forget_oldest(size_t count);
  void forget_all();
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  std::atomic<uint64_t> calls{0}, sampled{0}, sampled_ns{0};  // written only by the thread that makes the calls

 private:
  struct Chunk {
    std::array<GpuCall, 128> calls;
    std::atomic<uint32_t> count{0};
    std::atomic<Chunk*> next{nullptr};
  };
  Chunk* last_;   // the chunk that the thread fills
  Chunk* first_;  // the chunk that the reader reads
  uint32_t read_ = 0;
  std::deque<GpuCall> calls_;  // ascending by correlation
  size_t hint_ = 0;            // index of the call that find() returned last
  std::atomic<bool> ended_{false};
};

}  // namespace heddle::profile
